{ Uses libc: its threads, its memory, and its qsort, which calls back into Pascal. }
program job;
{$mode objfpc}{$H+}
uses cthreads, cmem, ctypes, SysUtils, Classes;

const
  Threads = 4;
  Words = 60000;

type
  PWord = ^cint;
  TCompare = function(a, b: PWord): cint; cdecl;
  TWorker = class(TThread)
    Sum: Int64;
    procedure Execute; override;
  end;

procedure qsort(base: Pointer; count, size: csize_t; compare: TCompare); cdecl; external 'c';

function Compared(a, b: PWord): cint; cdecl;
begin
  Result := a^ - b^;
end;

function Sorted(rounds: Integer): Int64;
var
  numbers: PWord;
  round, i: Integer;
begin
  Result := 0;
  for round := 1 to rounds do
  begin
    GetMem(numbers, Words * SizeOf(cint));
    for i := 0 to Words - 1 do
      numbers[i] := (i * 7919 + round) mod 65537;
    qsort(numbers, Words, SizeOf(cint), @Compared);
    Result := Result + numbers[Words div 2];
    FreeMem(numbers);
  end;
end;

procedure TWorker.Execute;
begin
  Sum := Sorted(40);
end;

var
  workers: array[1..Threads] of TWorker;
  gate: TextFile;
  line: String;
  i: Integer;
begin
  for i := 1 to Threads do
    workers[i] := TWorker.Create(False);
  Writeln(Sorted(60));
  for i := 1 to Threads do
    workers[i].WaitFor;
  AssignFile(gate, 'gate');
  Reset(gate);
  Readln(gate, line);
  CloseFile(gate);
  for i := 1 to Threads do
    Writeln(workers[i].Sum);
  try
    raise Exception.Create('thrown');
  except
    on e: Exception do Writeln(e.Message, ' ', line);
  end;
end.
