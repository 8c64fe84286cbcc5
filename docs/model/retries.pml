/*
 * One claim that is placed again until its work is done: a lease that expires and work that cannot be started make it
 * pending; work that ends by itself ends it. The store goes back or is wiped, and hosts attest in any order.
 *
 * Sizes: HOSTS, FAILOVERS, WIPES, FAILS (work that cannot be started), EXPIRES (leases). A switch takes a rule out.
 * See README.md.
 */
#ifndef HOSTS
#define HOSTS 2
#endif
#ifndef FAILOVERS
#define FAILOVERS 1
#endif
#ifndef WIPES
#define WIPES 0
#endif
#ifndef FAILS
#define FAILS 1
#endif
#ifndef EXPIRES
#define EXPIRES 1
#endif

mtype = { UNKNOWN, PENDING, CLAIMED, STARTING, ACTIVE, ENDING, ENDED };  /* the claim in the store */
mtype = { NOTHING, HELD, RUNS, DONE, FAILED };                           /* its newest placement in a journal */

typedef Data {                  /* what a failover rolls back */
  mtype state = UNKNOWN;
  byte host, token;             /* of the placement; `token` is also what a pending claim is pending from */
  byte closed                   /* nothing that was placed up to this token is wanted */
}

Data store, replica;
bool settled = true, attested[HOSTS];
byte last_token, former;        /* `former`: the last token of the epochs before this one */
mtype journal[HOSTS];
byte known[HOSTS];              /* the token of that placement */
byte running, times_done;       /* what really happens */
byte failovers, wipes, fails, expires;

#define IS_PLACED (store.state == CLAIMED || store.state == STARTING || store.state == ACTIVE || store.state == ENDING)
#define IS_HERE(h) (IS_PLACED && store.host == h && store.token == known[h])
#define HOLDS(h) (journal[h] == HELD || journal[h] == RUNS)

inline copy(to, from) {
  to.state = from.state; to.host = from.host; to.token = from.token; to.closed = from.closed
}

inline begin_epoch() {
  former = last_token; settled = false;
  for (n : 0 .. HOSTS - 1) { attested[n] = false }
  n = 0
}

/* retry() in transitions.lua: a placement that failed makes its claim pending, unless that is closed. */
inline place_again() {
  if
  :: store.closed >= store.token -> store.state = ENDED
  :: else -> store.state = PENDING
  fi
}

/* end_by_lost() in attest_merge.lua: the journal has done work of which the store knows nothing. */
inline end_by_lost(h) {
  if
#ifndef NO_LOST_ENDS
  :: journal[h] == DONE && !IS_HERE(h) && store.state != ENDED && known[h] > store.token ->
     if
     :: IS_PLACED -> store.closed = known[h]
     :: else -> store.state = ENDED
     fi
#endif
  :: else
  fi
}

inline attest(h) {
  if
  :: HOLDS(h) && IS_HERE(h) && store.state == CLAIMED -> store.state = STARTING
  :: HOLDS(h) && !IS_HERE(h) && store.state != ENDED && (!IS_PLACED || store.token < known[h]) ->
     store.state = (journal[h] == RUNS -> ACTIVE : STARTING);
     store.host = h; store.token = known[h]
  :: !HOLDS(h) && journal[h] != NOTHING && IS_PLACED && store.host == h && store.token <= known[h] ->
     if
     :: journal[h] == DONE -> store.state = ENDED
     :: else -> place_again()
     fi
  :: else -> end_by_lost(h)
  fi;
  attested[h] = true; settled = true;
  for (n : 0 .. HOSTS - 1) { settled = settled && attested[n] }
  n = 0
}

proctype Host(byte h) {
  byte n;
end:
  do
  :: atomic { !attested[h] -> attest(h) }
  :: atomic { attested[h] && store.state == CLAIMED && store.host == h && store.token > known[h] &&
#ifndef ACCEPT_DOOMED
       store.token > store.closed &&
#endif
#ifndef ACCEPT_UNSETTLED
       (settled || store.token > former) &&
#endif
       true -> journal[h] = HELD; known[h] = store.token; store.state = STARTING }
  :: atomic { attested[h] && journal[h] == HELD && IS_HERE(h) && store.state == STARTING ->
       if
       :: journal[h] = RUNS; running++;
          assert(running == 1);                  /* it never runs on two hosts, */
          assert(times_done == 0)                /* nor again after it was done */
       :: fails < FAILS -> fails++; journal[h] = FAILED; place_again()
       fi }
  :: atomic { attested[h] && journal[h] == RUNS && IS_HERE(h) && store.state == STARTING -> store.state = ACTIVE }
  :: atomic { journal[h] == RUNS -> journal[h] = DONE; running--; times_done++ }
  :: atomic { attested[h] && journal[h] == DONE && IS_HERE(h) -> store.state = ENDED }
  :: atomic { attested[h] && HOLDS(h) && (!IS_HERE(h) || store.state == ENDING) ->   /* it is not wanted any more */
       if
       :: journal[h] == RUNS -> running--
       :: else
       fi;
       if
       :: IS_HERE(h) -> store.state = ENDED
       :: else
       fi;
       journal[h] = FAILED }
  od
}

proctype Schedulers() {
  byte h;
end:
  do
  :: atomic { store.state == PENDING && settled ->
       if
       :: h = 0
       :: HOSTS > 1 -> h = HOSTS - 1
       fi;
       last_token++; store.state = CLAIMED; store.host = h; store.token = last_token; h = 0 }
  :: atomic { store.state == CLAIMED && attested[store.host] && expires < EXPIRES -> expires++; place_again() }
  :: atomic { IS_PLACED && store.state != ENDING && store.token <= store.closed ->   /* reconcile.lua */
       if
       :: store.state == CLAIMED && attested[store.host] -> store.state = ENDED
       :: else -> store.state = ENDING
       fi }
  :: atomic { store.state == ENDING && attested[store.host] && !(IS_HERE(store.host) && HOLDS(store.host)) ->
       store.state = ENDED }
  od
}

/* The caller repeats its request, with its own id, until it has an answer, and after a loss of all data. */
proctype Caller() {
end:
  do
  :: atomic { store.state == UNKNOWN && settled ->
       last_token++; store.state = PENDING; store.token = last_token;
       copy(replica, store) }
  od
}

proctype World() {
  byte n;
end:
  do
  :: atomic { failovers < FAILOVERS -> copy(replica, store) }      /* the replica catches up, at any time */
  :: atomic { failovers < FAILOVERS -> failovers++; copy(store, replica); begin_epoch() }
  :: atomic { wipes < WIPES -> wipes++;
       store.state = UNKNOWN; store.host = 0; store.token = 0; store.closed = 0;
       copy(replica, store); begin_epoch() }
  :: atomic { timeout ->                                           /* nothing more can happen: */
       assert(store.state == ENDED && running == 0); break }       /* the claim has ended */
  od
}

init {
  byte n;
  atomic {
    for (n : 0 .. HOSTS - 1) { attested[n] = true; journal[n] = NOTHING }
    n = 0;
    if :: failovers = FAILOVERS :: skip fi;                        /* each fault may also stay away */
    if :: wipes = WIPES :: skip fi;
    for (n : 0 .. HOSTS - 1) { run Host(n) }
    n = 0;
    run Schedulers(); run Caller(); run World()
  }
}
