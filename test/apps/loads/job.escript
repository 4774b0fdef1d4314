#!/usr/bin/env escript
main(_) ->
    Numbers = [I * 7919 rem 100003 || I <- lists:seq(1, 300000)],
    {ok, Own} = file:open("own", [write]),
    {ok, Gate} = file:open("gate", [read, raw]),
    {ok, Text} = file:read(Gate, 100),
    file:close(Gate),
    Self = self(),
    Children = [spawn(fun() -> Self ! {self(), lists:sum([X * N rem 11 || X <- Numbers])} end)
                || N <- lists:seq(1, 8)],
    Sums = [receive {Child, Sum} -> Sum end || Child <- Children],
    io:format("~p ~p ~p~n", [Text, Sums, lists:nth(1000, lists:sort(Numbers))]),
    io:format("~p~n", [catch error(caught)]),
    io:format("~s", [os:cmd("echo child | tr a-z A-Z")]),
    file:write(Own, term_to_binary(lists:sublist(Numbers, 1000))),
    halt(6).
