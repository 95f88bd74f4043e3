%% An arm of the bench: Erlang/OTP, with as many schedulers as +S says.
%%
%%     erl +S 1 +P 2097152 -noinput -pa DIRECTORY -s bench_erlang main -extra WORKLOAD SIZE ...
%%
%% Processes are bare where nothing more is needed, which is Erlang at its fastest; who asks one
%% question at a time calls a gen_server. (There is a module `erlang` already, hence the name.)
-module(bench_erlang).
-behaviour(gen_server).
-export([main/0, init/1, handle_call/3, handle_cast/2]).

-define(TIMEOUT, 5000).
-define(STARTED, 1).
-define(HANDLED, 2).

%% The program

main() ->
    logger:set_primary_config(level, none),
    %% A spawned process: the one that started has been doing other things.
    {Pid, Monitor} = spawn_monitor(fun() -> measure_all(init:get_plain_arguments()) end),
    receive
        {'DOWN', Monitor, process, Pid, normal} -> halt(0);
        {'DOWN', Monitor, process, Pid, {no_such_workload, Name}} ->
            io:format(standard_error, "~s: no such workload here~n", [Name]),
            halt(3);
        {'DOWN', Monitor, process, Pid, Reason} ->
            io:format(standard_error, "~p~n", [Reason]),
            halt(1)
    end.

measure_all([]) -> ok;
measure_all([Name, Size | Others]) ->
    N = list_to_integer(Size),
    Cold = ["idle", "timers-fire", "latency"], % not warmed up, mostly since memory is measured
    lists:member(Name, Cold) orelse workload(Name, min(N, 10000), fun(Run) -> Run() end),
    workload(Name, N, fun measure/1),
    measure_all(Others).

%% Run() gives how many were handled, and perhaps more to tell.
measure(Run) ->
    garbage_collect(),
    Began = now_ns(), Cpu = cpu(),
    Result = Run(),
    Seconds = (now_ns() - Began) / 1.0e9,
    {Handled, More} = case Result of {_, _} -> Result; _ -> {Result, ""} end,
    io:format("handled=~b seconds=~.6f cpu=~.6f ~s~n", [Handled, Seconds, cpu() - Cpu, More]).

now_ns() -> erlang:monotonic_time(nanosecond).

%% Seconds, user and system (statistics(runtime) leaves the latter out), in steps of 10 ms.
cpu() ->
    {ok, Stat} = file:read_file("/proc/self/stat"),
    [_, Fields] = string:split(Stat, ") ", trailing),
    Words = string:lexemes(Fields, " "),
    (binary_to_integer(lists:nth(12, Words)) + binary_to_integer(lists:nth(13, Words))) / 100.

resident() ->
    {ok, Status} = file:read_file("/proc/self/status"),
    {match, [Kilobytes]} =
        re:run(Status, "VmRSS:\\s*(\\d+)", [{capture, all_but_first, binary}]),
    binary_to_integer(Kilobytes) * 1024.

%% workload(Name, N, Around) makes everything ready, gives Around what is measured, and cleans up.

workload("ping-pong", N, Around) -> ping_pong(N, fun player/2, Around);
workload("ping-pong-table", N, Around) -> ping_pong({left, N}, fun ball_player/2, Around);
workload("tell-1000", N, Around) -> Around(fun() -> tell(counter(), N, 1000) end);
workload("tell-10000", N, Around) -> Around(fun() -> tell(counter(), N, 10000) end);
workload("fan-in", N, Around) ->
    Consumer = counter(),
    Around(fun() ->
        lists:max(in_parallel(10, fun(_) -> tell(Consumer, N div 10, 1000) end))
    end);
workload("ring", N, Around) -> ring(N, Around);
workload("round-robin", N, Around) -> Around(fun() -> round_robin(N) end);
workload("ask", N, Around) ->
    with_server(fun(Server) -> Around(fun() -> ask(Server, N, 0) end) end);
workload("ask-1000", N, Around) ->
    Echo = spawn_link(fun echo/0),
    Around(fun() -> ask_many(Echo, N, 1000, 0) end),
    kill(Echo);
workload("scatter", N, Around) ->
    Replicas = [spawn_link(fun echo_to_alias/0) || _ <- [1, 2, 3]],
    Around(fun() ->
        lists:sum(in_parallel(100, fun(I) -> scatter(Replicas, I, N, 100, 0) end))
    end),
    lists:foreach(fun kill/1, Replicas);
workload("spawn", N, Around) -> Around(fun() -> lives(N, 100) end);
workload("lives", N, Around) -> Around(fun() -> lives(N, N) end);
workload("idle", N, Around) -> Around(fun() -> idle(N) end);
workload("timers-fire", N, Around) -> Around(fun() -> timers_fire(N) end);
workload("timers-cancel", N, Around) -> Around(fun() -> timers_cancel(N) end);
workload("restart", N, Around) -> restart(N, Around);
workload("deep", N, Around) -> Around(fun() -> deep(N) end);
workload("priority", N, Around) -> Around(fun() -> priority(N) end);
workload("ask-64", N, Around) -> ask_with(64, N, Around);
workload("ask-16k", N, Around) -> ask_with(16384, N, Around);
workload("ask-256k", N, Around) -> ask_with(262144, N, Around);
workload("latency", N, Around) ->
    with_server(fun(Server) -> Around(fun() -> latency(Server, N) end) end);
workload(Name, _, _) -> exit({no_such_workload, Name}).

kill(Pid) -> unlink(Pid), exit(Pid, kill).

%% Gives what the Count processes that run Fun(I) return.
in_parallel(Count, Fun) ->
    Me = self(),
    Pids = [spawn_link(fun() -> Me ! {self(), Fun(I)} end) || I <- lists:seq(1, Count)],
    [receive {Pid, Result} -> Result end || Pid <- Pids].

%% Numbers and tuples back and forth. Players tell how many they handled when all is over.

ping_pong(First, Player, Around) ->
    Me = self(),
    Meet = fun() -> receive {meet, Peer} -> Me ! {handled, Player(Peer, 0)} end end,
    Ping = spawn_link(Meet),
    Pong = spawn_link(Meet),
    Ping ! {meet, Pong},
    Pong ! {meet, Ping},
    Around(fun() ->
        Ping ! First,
        receive {handled, A} -> receive {handled, B} -> A + B end end
    end).

player(Peer, Handled) ->
    receive
        1 -> Peer ! over, Handled + 1;
        Left when is_integer(Left) -> Peer ! Left - 1, player(Peer, Handled + 1);
        over -> Handled
    end.

ball_player(Peer, Handled) ->
    receive
        {left, 1} -> Peer ! over, Handled + 1;
        {left, Left} -> Peer ! {left, Left - 1}, ball_player(Peer, Handled + 1);
        over -> Handled
    end.

%% Telling

counter() -> spawn_link(fun() -> count(0) end).

count(Handled) ->
    receive
        Message when is_integer(Message) -> count(Handled + 1);
        {how_many, From, Tag} -> From ! {Tag, Handled}, count(Handled)
    end.

tell(Counter, N, Batch) -> tell(Counter, N, Batch, 0).

tell(_, 0, _, Handled) -> Handled;
tell(Counter, N, Batch, _) ->
    tell_numbers(Counter, min(N, Batch)),
    Tag = make_ref(),
    Counter ! {how_many, self(), Tag},
    receive
        {Tag, Handled} -> tell(Counter, N - min(N, Batch), Batch, Handled)
    after ?TIMEOUT -> exit(timeout)
    end.

tell_numbers(_, 0) -> ok;
tell_numbers(Pid, N) -> Pid ! N, tell_numbers(Pid, N - 1).

ring(N, Around) ->
    Me = self(),
    First = spawn_link(fun() -> receive {next, Next} -> ring_member(Next, Me, 0) end end),
    Last = lists:foldl(
        fun(_, Next) -> spawn_link(fun() -> ring_member(Next, Me, 0) end) end,
        First, lists:seq(1, 999)),
    First ! {next, Last},
    Around(fun() ->
        First ! N,
        receive {handled, Handled} -> Handled end
    end).

%% The end goes round once more, and gathers what each has handled.
ring_member(Next, Me, Handled) ->
    receive
        1 -> Next ! {over, Handled + 1, self()}, ring_last(Next, Me);
        Left when is_integer(Left) -> Next ! Left - 1, ring_member(Next, Me, Handled + 1);
        {over, Sum, Pid} -> Next ! {over, Sum + Handled, Pid}
    end.

ring_last(_, Me) -> receive {over, Sum, _} -> Me ! {handled, Sum} end.

%% OTP has no router: a process that forwards is how it is done.
round_robin(N) ->
    Me = self(),
    Workers = [spawn_link(fun() -> worker(Me, 0, 125) end) || _ <- lists:seq(1, 8)],
    Router = spawn_link(fun() -> route(list_to_tuple(Workers), 1) end),
    produce(Router, N),
    kill(Router),
    [Worker ! {how_many, Me} || Worker <- Workers],
    lists:sum([receive {handled, Handled} -> Handled end || _ <- Workers]).

produce(_, 0) -> ok;
produce(Router, N) ->
    tell_numbers(Router, 1000),
    [receive done -> ok end || _ <- lists:seq(1, 8)],
    produce(Router, N - 1000).

route(Workers, Turn) ->
    receive Message -> element(Turn, Workers) ! Message, route(Workers, Turn rem 8 + 1) end.

worker(Producer, Handled, 0) -> Producer ! done, worker(Producer, Handled, 125);
worker(Producer, Handled, Left) ->
    receive
        Message when is_integer(Message) -> worker(Producer, Handled + 1, Left - 1);
        {how_many, From} -> From ! {handled, Handled}
    end.

%% Asking

init(State) -> {ok, State}.

handle_call(Question, _From, State) when is_integer(Question) -> {reply, Question, State};
handle_call(Text, _From, State) when is_binary(Text) -> {reply, byte_size(Text), State};
handle_call(ping, _From, State) -> {reply, pong, State}.

handle_cast(fail, _) -> exit(on_purpose).

with_server(Fun) ->
    {ok, Server} = gen_server:start_link(?MODULE, none, []),
    Fun(Server),
    gen_server:stop(Server).

ask(_, 0, Right) -> Right;
ask(Server, N, Right) ->
    N = gen_server:call(Server, N, ?TIMEOUT),
    ask(Server, N - 1, Right + 1).

%% One process has up to Free more questions under way; the reference of each one's timer is its
%% tag. A thousand processes that call a gen_server take three times as long.
ask_many(_, 0, 1000, Right) -> Right;
ask_many(Echo, N, Free, Right) when N > 0, Free > 0 ->
    Tag = erlang:start_timer(?TIMEOUT, self(), too_late),
    Echo ! {self(), Tag, N},
    ask_many(Echo, N - 1, Free - 1, Right);
ask_many(Echo, N, Free, Right) ->
    receive
        {Tag, Answer} when is_integer(Answer) ->
            erlang:cancel_timer(Tag, [{async, true}, {info, false}]),
            ask_many(Echo, N, Free + 1, Right + 1);
        {timeout, _, too_late} -> ask_many(Echo, N, Free + 1, Right)
    end.

echo() -> receive {From, Tag, Question} -> From ! {Tag, Question}, echo() end.

ask_with(Bytes, N, Around) ->
    Text = binary:copy(<<"x">>, Bytes),
    with_server(fun(Server) -> Around(fun() -> ask_text(Server, Text, Bytes, N, 0) end) end).

ask_text(_, _, _, 0, Right) -> Right;
ask_text(Server, Text, Bytes, N, Right) ->
    Bytes = gen_server:call(Server, Text, ?TIMEOUT),
    ask_text(Server, Text, Bytes, N - 1, Right + 1).

%% An alias that the first reply uses up: later ones are dropped on their way.
scatter(_, I, N, _, Answered) when I > N -> Answered;
scatter(Replicas, I, N, Step, Answered) ->
    Alias = alias([reply]),
    [Replica ! {Alias, I} || Replica <- Replicas],
    receive
        {Alias, I} -> scatter(Replicas, I + Step, N, Step, Answered + 1)
    after 250 ->
        unalias(Alias),
        scatter(Replicas, I + Step, N, Step, Answered)
    end.

echo_to_alias() ->
    receive {Alias, Question} -> Alias ! {Alias, Question}, echo_to_alias() end.

latency(Server, N) ->
    Pairs = [busy_pair() || _ <- lists:seq(1, 500)],
    Times = lists:sort([timed_call(Server, I) || I <- lists:seq(1, N)]),
    lists:foreach(fun kill/1, lists:append(Pairs)),
    Quantile = fun(Q) -> lists:nth(max(1, trunc(N * Q)), Times) / 1000 end,
    {length(Times),
     io_lib:format("p50=~.1f p99=~.1f p999=~.1f", [Quantile(Q) || Q <- [0.5, 0.99, 0.999]])}.

busy_pair() ->
    Ping = spawn_link(fun() -> receive {meet, Peer} -> play(Peer) end end),
    Pong = spawn_link(fun() -> play(Ping) end),
    Ping ! {meet, Pong},
    Pong ! 1,
    [Ping, Pong].

play(Peer) -> receive Count -> Peer ! Count, play(Peer) end.

timed_call(Server, I) ->
    Began = now_ns(),
    I = gen_server:call(Server, I, ?TIMEOUT),
    now_ns() - Began.

%% Lives. What is started and handled is counted in two counters; monitors tell of ends.

lives(N, Batch) ->
    Counts = new_counts(),
    lives(N, Batch, Counts),
    counters:get(Counts, ?HANDLED).

lives(0, _, _) -> ok;
lives(N, Batch, Counts) ->
    Pids = [spawn_mortal(Counts) || _ <- lists:seq(1, Batch)],
    [monitor(process, Pid) || Pid <- Pids],
    [Pid ! 1 || Pid <- Pids],
    [Pid ! stop || Pid <- Pids],
    await_ends(Batch),
    lives(N - Batch, Batch, Counts).

new_counts() -> counters:new(2, [write_concurrency]).

spawn_mortal(Counts) ->
    spawn(fun() -> counters:add(Counts, ?STARTED, 1), mortal(Counts) end).

mortal(Counts) ->
    receive
        stop -> ok;
        Message when is_integer(Message) -> counters:add(Counts, ?HANDLED, 1), mortal(Counts)
    end.

await_ends(0) -> ok;
await_ends(N) -> receive {'DOWN', _, process, _, normal} -> await_ends(N - 1) end.

idle(N) ->
    Counts = new_counts(),
    Empty = resident(),
    Bytes = fun() -> (resident() - Empty) div N end,
    {SpawnRate, Pids} = per_second(N, fun() ->
        Pids = [spawn_mortal(Counts) || _ <- lists:seq(1, N)],
        await_count(Counts, ?STARTED, N),
        Pids
    end),
    Idle = Bytes(),
    {TellRate, _} = per_second(N, fun() ->
        [Pid ! 1 || Pid <- Pids],
        await_count(Counts, ?HANDLED, N)
    end),
    After = Bytes(),
    {StopRate, _} = per_second(N, fun() ->
        [monitor(process, Pid) || Pid <- Pids],
        [Pid ! stop || Pid <- Pids],
        await_ends(N)
    end),
    {counters:get(Counts, ?HANDLED),
     io_lib:format("bytes=~b bytes_after=~b spawn_rate=~b tell_rate=~b stop_rate=~b",
                   [Idle, After, SpawnRate, TellRate, StopRate])}.

%% Looks each time the others have had their turn.
await_count(Counts, Which, N) ->
    case counters:get(Counts, Which) of
        N -> ok;
        _ -> erlang:yield(), await_count(Counts, Which, N)
    end.

per_second(N, Fun) ->
    Began = now_ns(),
    Result = Fun(),
    {round(N * 1.0e9 / (now_ns() - Began)), Result}.

%% The child tells its pid when it has started again. OTP's own supervisor looks through a list of
%% the restarts of the last second at each, and is ten times slower here.
restart(N, Around) ->
    Me = self(),
    Supervisor = spawn_link(fun() -> process_flag(trap_exit, true), supervise(Me) end),
    Around(fun() -> receive {up, Child} -> fail(Child, N, 0) end end),
    kill(Supervisor).

supervise(Me) ->
    {ok, Child} = gen_server:start_link(?MODULE, none, []),
    Me ! {up, Child},
    receive {'EXIT', Child, on_purpose} -> supervise(Me) end.

fail(_, 0, Restarts) -> Restarts;
fail(Child, N, Restarts) ->
    gen_server:cast(Child, fail),
    receive
        {up, Again} ->
            pong = gen_server:call(Again, ping, ?TIMEOUT),
            fail(Again, N - 1, Restarts + 1)
    end.

%% Timers tell another process than the one that starts them: a collection looks through what waits
%% in a mailbox, which a process that fills it while it starts a million timers would pay for.

timers_fire(N) ->
    Me = self(),
    rand:seed(exsss, 42),
    Empty = resident(),
    Counter = spawn_opt(fun() -> Me ! {fired, fired(N, 0)} end,
                        [link, {message_queue_data, off_heap}]),
    start_timers(Counter, N),
    Bytes = (resident() - Empty) div N,
    receive {fired, Fired} -> {Fired, io_lib:format("bytes=~b", [Bytes])} end.

start_timers(_, 0) -> ok;
start_timers(Pid, N) ->
    erlang:send_after(rand:uniform(1001) - 1, Pid, fire),
    start_timers(Pid, N - 1).

fired(0, Fired) -> Fired;
fired(Left, Fired) -> receive fire -> fired(Left - 1, Fired + 1) end.

timers_cancel(N) ->
    rand:seed(exsss, 42),
    Timers = [erlang:send_after(60000 + rand:uniform(1001) - 1, self(), fire)
              || _ <- lists:seq(1, N)],
    cancel(Timers, 0).

cancel([], Cancelled) -> Cancelled;
cancel([Timer | Timers], Cancelled) ->
    case erlang:cancel_timer(Timer) of
        false -> cancel(Timers, Cancelled);
        _Left -> cancel(Timers, Cancelled + 1)
    end.

%% Mailboxes

deep(N) ->
    Counter = spawn_opt(fun() -> count(0) end, [link, {message_queue_data, off_heap}]),
    erlang:suspend_process(Counter),
    tell_numbers(Counter, N),
    erlang:resume_process(Counter),
    tell(Counter, 1, 1) - 1.

%% A process takes all its mail, then handles it by levels: selective receives with a timeout of
%% zero, one for each level, look through the mailbox each time and are slower.
priority(N) ->
    Me = self(),
    Sorter = spawn_link(fun() -> sorter(Me, [], [], [], 0) end),
    priority_batches(Sorter, N, 0).

priority_batches(_, 0, Handled) -> Handled;
priority_batches(Sorter, N, _) ->
    erlang:suspend_process(Sorter),
    tell_numbers(Sorter, 1000),
    Sorter ! how_many,
    erlang:resume_process(Sorter),
    receive {handled, Handled} -> priority_batches(Sorter, N - 1000, Handled) end.

sorter(Me, High, Middle, Low, Handled) ->
    receive
        how_many ->
            Sum = handle(Low, handle(Middle, handle(High, Handled))),
            Me ! {handled, Sum},
            sorter(Me, [], [], [], Sum);
        Message when Message rem 3 =:= 0 -> sorter(Me, [Message | High], Middle, Low, Handled);
        Message when Message rem 3 =:= 1 -> sorter(Me, High, [Message | Middle], Low, Handled);
        Message -> sorter(Me, High, Middle, [Message | Low], Handled)
    end.

handle(Messages, Handled) ->
    lists:foldl(fun(_, Sum) -> Sum + 1 end, Handled, lists:reverse(Messages)).
