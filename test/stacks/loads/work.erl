%% Functions that call each other, lists and sorting, on a scheduler of the JIT's code.
-module(work).
-export([main/0]).

main() ->
    rounds(5000),
    io:format("done~n"),
    halt(0).

rounds(End) ->
    fibonacci(24),
    sorted(20000),
    case element(1, statistics(runtime)) < End of
        true -> rounds(End);
        false -> ok
    end.

fibonacci(N) when N < 2 -> N;
fibonacci(N) -> fibonacci(N - 1) + fibonacci(N - 2).

sorted(Count) ->
    length(lists:sort([{I * 7919 rem Count, I} || I <- lists:seq(1, Count)])).
