for {set i 0} {$i < 300000} {incr i} { lappend numbers [expr {$i * 7919 % 100003}] }
set own [open own w]
set cat [open "|cat" r+]
set gate [open gate]; read $gate; close $gate
puts $cat hello; flush $cat; puts [gets $cat]; close $cat
puts [lindex [lsort -integer $numbers] 1000]
puts [exec echo child | tr a-z A-Z]
catch { exec sh -c "exit 3" } message options
puts $message
after 50 { set done 1 }
vwait done
puts $own [string length [join $numbers]]
exit 4
