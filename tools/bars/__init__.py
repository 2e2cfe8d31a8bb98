"""Four bars: the speed of matching, routing, a node and Spark, measured quickly and held against the last time.

    python -m tools.bars                       # about two minutes; `make bars`
    python -m tools.bars --only match,route    # some of the bars
    python -m tools.bars --dry-run             # measure and compare, write nothing
    python -m tools.bars --accept              # write the entry although a bar is slower

| bar | one unit of work |
|---|---|
| `match` | an event in an Arrow batch, through an `Index` of 10,000 filters |
| `match-single` | the same, one event a call |
| `route` | an event through a `Broker` with 1,000 filters of clients and 1,000 of one neighbour, in batches of 100 |
| `node` | an event through a node on loopback with a log on disk, to one of ten subscribers; CPU of the node only |
| `spark` | a row of a DataFrame through `match` with 10,000 subscriptions; Java and all workers |

The cost of a bar is CPU time for one unit, the best of several rounds. A yardstick, a fixed loop in pure Python, runs
before each round. The compared figure is cost divided by yardstick, because that ratio changes less from machine to
machine than the cost does. A ratio above 120 % of the last entry in `benchmarks/history/` is an alert: a line in
capitals, exit code 1, and no new entry, so that the next run is held against the same good entry. A run on a busy
machine writes no entry, either: on two cores the same node cost 33 µs at load 2 to 4, and 49 to 56 at load 8 to 11. The
other bars differed by less than 10 %.

`history` has entries and their comparison, without any measuring; `measure` has the bars, and all imports of Fieldfare.
"""
