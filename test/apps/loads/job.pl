use strict;
use warnings;
$| = 1;
my %h;
for my $i (1 .. 600000) { $h{"key" . ($i % 5000)} .= chr(65 + $i % 26); }
open(my $own, '>', 'own') or die;
open(my $pipe, '|-', 'cat') or die;
open(my $gate, '<', 'gate') or die;
<$gate>;
close $gate;
print $pipe "through a pipe\n";
close $pipe;
my @sorted = sort { length($h{$b}) <=> length($h{$a}) || $a cmp $b } keys %h;
print "$sorted[0] ", length $h{$sorted[0]}, "\n";
my $pid = fork();
if (!$pid) { exit 5 }
waitpid($pid, 0);
print $? >> 8, "\n";
$SIG{ALRM} = sub { print "alarm\n" };
alarm 1;
select(undef, undef, undef, 1.5);
print `echo from a shell`;
print $own "written\n";
die "the end\n";
