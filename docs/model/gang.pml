/*
 * A gang of two: until both have been active, the failure of one ends both; from then on each lives by itself.
 *
 * README.md in this folder says what stands for what. Member x has one placement, on host x. Sizes come with -D:
 * FAILOVERS, AWAYS, WRITE_OFFS, FAILS (hooks that fail, leases that run out on hosts that are there), EXITS
 * (work that ends by itself), RELEASES (1: the owner releases the gang, 2: also one member of it, once the gang has
 * been active). A rule is taken out with -D and its name.
 */
#ifndef FAILOVERS
#define FAILOVERS 1
#endif
#ifndef AWAYS
#define AWAYS 1
#endif
#ifndef WRITE_OFFS
#define WRITE_OFFS 1
#endif
#ifndef FAILS
#define FAILS 1
#endif
#ifndef EXITS
#define EXITS 0
#endif
#ifndef RELEASES
#define RELEASES 2
#endif

#define NONE     0
#define CLAIMED  1
#define STARTING 2
#define ACTIVE   3
#define ENDING   4

/* On its host's page. A tombstone says whether the work had been active (DONE), or never was or fell with its gang
 * (FAILED). */
#define NO       0
#define BEGUN    1
#define LIVE     2
#define STOPPING 3
#define LEAVING  4           /* STOPPING, and it had been active */
#define FAILED   5
#define DONE     6

typedef Data {
  byte state[2];
  bool been_active[2];
  bool closed[2];            /* its claim was released, or has ended with its gang */
  bool fell[2];              /* why it was closed */
  bool failed[2];            /* it ended, was never active, and so fails the gang */
  bool exited[2];            /* its work ended by itself before the gang was complete */
  bool apart;                /* one has left the gang: the other stands alone */
  bool lost[2]
}
Data d[2];
#define p d[0]
bool settled;
bool attested[2];
bool written_off[2];
bool had_attested[2];        /* in this epoch, when it was written off */

byte page[2];
bool runs[2];
bool away[2];
bool for_ever[2];
bool given_up[2];
bool formed;                 /* the truth: both were confirmed, and ran */
bool done[2];                /* the truth: its work has ended by itself */
bool left_unheard;           /* the truth: one has left the gang whose host had not attested in that epoch */
bool released[2], said[2];
bool has_copy, keeps;
byte failovers, aways, write_offs, fails, exits;
hidden byte i;

inline new_epoch() {
  settled = false;
  for (i : 0 .. 1) {
    attested[i] = false; had_attested[i] = false; written_off[i] = false; said[i] = false
  };
  i = 0
}

inline copy_data(to, src) {
  for (i : 0 .. 1) {
    d[to].state[i] = d[src].state[i]; d[to].been_active[i] = d[src].been_active[i];
    d[to].closed[i] = d[src].closed[i]; d[to].lost[i] = d[src].lost[i]; d[to].fell[i] = d[src].fell[i];
    d[to].failed[i] = d[src].failed[i]; d[to].exited[i] = d[src].exited[i]
  };
  d[to].apart = d[src].apart;
  i = 0
}

inline clear_data(k) {
  for (i : 0 .. 1) {
    d[k].state[i] = NONE; d[k].been_active[i] = false; d[k].closed[i] = false; d[k].fell[i] = false;
    d[k].lost[i] = false; d[k].failed[i] = false; d[k].exited[i] = false
  };
  d[k].apart = false;
  i = 0
}

#define stands(x) (p.state[x] >= CLAIMED && p.state[x] <= ACTIVE)
#define is_formed (p.been_active[0] && p.been_active[1])

/* As in placements.pml, with a claim's `closed`. */
inline end_member(x) {
  p.state[x] = (p.lost[x] || (p.state[x] == CLAIMED && attested[x]) -> NONE : ENDING)
}

#ifdef FALL_UNHEARD
#define is_heard(x) true
#elif defined(FALL_WITH_HOST)
#define is_heard(x) (attested[x] || written_off[x])
#elif defined(NO_HEARD)
#define is_heard(x) (attested[x])
#else
#define is_heard(x) (attested[x] || had_attested[x])
#endif

/* The work of one has ended, and the other is known to have never been active. */
#ifdef EXIT_SETTLED
#define exit_fails(x) (p.exited[1 - (x)] && !p.been_active[x] && settled)
#else
#define exit_fails(x) (p.exited[1 - (x)] && !p.been_active[x] && is_heard(x))
#endif

/* Nobody may be ended for a gang that both had been active in. */
inline fall(x) { assert(!formed || released[x]); p.closed[x] = true; p.fell[x] = true }

inline say(x) {
  said[x] = true; p.closed[x] = true;
  if
  :: stands(x) -> end_member(x)
  :: else
  fi
}

proctype Schedulers() {
end:
  do
  :: atomic { p.failed[0] && !p.closed[1] -> fall(1) }
  :: atomic { p.failed[1] && !p.closed[0] -> fall(0) }
  :: atomic { exit_fails(0) && !p.closed[0] -> fall(0) }
  :: atomic { exit_fails(1) && !p.closed[1] -> fall(1) }
  :: atomic { p.closed[0] && stands(0) && (attested[0] || p.lost[0]) -> end_member(0) }
  :: atomic { p.closed[1] && stands(1) && (attested[1] || p.lost[1]) -> end_member(1) }
  :: atomic { p.state[0] == ENDING && p.lost[0] -> p.state[0] = NONE }
  :: atomic { p.state[1] == ENDING && p.lost[1] -> p.state[1] = NONE }
  od
}

proctype Owner() {
end:
  do
  :: atomic { RELEASES && !keeps && !released[0] && !released[1] ->
       released[0] = true; released[1] = true; say(0); say(1) }
  :: atomic { RELEASES > 1 && !keeps && formed && is_formed && !released[0] && !released[1] ->
       released[0] = true; say(0) }
  :: atomic { released[0] && !said[0] -> say(0) }
  :: atomic { released[1] && !said[1] -> say(1) }
  od
}

#ifdef FELL_IS_DONE
#define is_fallen(x) false
#else
#define is_fallen(x) (p.fell[x])
#endif
#define word(x) (page[x] == BEGUN -> STARTING : (page[x] == LIVE -> ACTIVE : ENDING))

#ifdef FELL_IS_DONE
#define has_fallen(x) false
#else
#define has_fallen(x) (page[x] == STOPPING || page[x] == FAILED)
#endif
#ifdef FORGET_ACTIVE
#define had_been_active(x) false
#define never_was_active(x) (page[x] >= STOPPING)
#else
#define had_been_active(x) (page[x] == LEAVING || page[x] == DONE)
#define never_was_active(x) (page[x] == STOPPING || page[x] == FAILED)
#endif
inline attest(x) {
  /* One that had been active leaves the gang, which may have been complete. */
  if
  :: stands(x) && !p.closed[x] && had_been_active(x) -> p.apart = true
  :: stands(x) && !p.closed[x] && never_was_active(x) -> p.failed[x] = !p.apart
  :: else
  fi;
  if
  :: page[x] == FAILED || page[x] == DONE -> p.state[x] = NONE
  :: page[x] >= BEGUN && page[x] <= LEAVING && p.lost[x] && p.state[x] == NONE -> p.state[x] = ENDING
  :: page[x] >= BEGUN && page[x] <= LEAVING && !(p.lost[x] && p.state[x] == NONE) ->
       p.state[x] = (word(x) > p.state[x] -> word(x) : p.state[x])
  :: page[x] == NO
  fi;
#ifdef FORGET_ACTIVE
  p.been_active[x] = p.been_active[x] || page[x] == LIVE;
#else
  p.been_active[x] = (p.been_active[x] || page[x] == LIVE || page[x] == LEAVING || page[x] == DONE) && !has_fallen(x);
#endif
  attested[x] = true; p.lost[x] = false
}

#ifdef FALL_UNHEARD
#define may_expire(x) true
#else
#define may_expire(x) (attested[x] || written_off[x])
#endif
#define hears(x) (!away[x] && attested[x])

/* It ends on a host that is heard, and so fails the gang; else it may have been active, and the other stands alone. */
inline end_leased(x) {
  if
  :: is_heard(x) -> p.failed[x] = !p.closed[x] && !p.apart
#ifndef STAY_UNHEARD
  :: !is_heard(x) -> p.apart = true; left_unheard = left_unheard || !(attested[x] || had_attested[x])
#endif
  :: else
  fi;
  end_member(x)
}

#ifdef CONFIRM_EXITED
#define may_confirm(x) (!p.closed[x])
#else
#define may_confirm(x) (!p.closed[x] && !p.exited[1 - (x)])
#endif

inline fail(x) { fails++; p.failed[x] = !p.closed[x] && !p.apart; page[x] = FAILED; runs[x] = false; p.state[x] = NONE }

proctype Host(byte x) {
end:
  do
  :: atomic { !away[x] && !attested[x] -> attest(x) }
  :: atomic { hears(x) && page[x] == NO && (p.state[x] == CLAIMED || p.state[x] == STARTING) ->
       p.state[x] = STARTING; page[x] = BEGUN }
  :: atomic { hears(x) && page[x] == NO && p.state[x] == ENDING -> p.state[x] = NONE; page[x] = FAILED }
  :: atomic { page[x] == BEGUN && !runs[x] -> runs[x] = true }
  :: atomic { hears(x) && page[x] == BEGUN && runs[x] && stands(x) && may_confirm(x) ->
       p.state[x] = ACTIVE; p.been_active[x] = true; page[x] = LIVE;
       formed = formed || (page[0] == LIVE && page[1] == LIVE) }
  :: atomic { hears(x) && page[x] == BEGUN && fails < FAILS && p.state[x] != NONE -> fail(x) }
  :: atomic { fails < FAILS && (p.state[x] == CLAIMED || p.state[x] == STARTING) && may_expire(x) && !p.lost[x] ->
       fails++; end_leased(x) }
  :: atomic { (p.state[x] == CLAIMED || p.state[x] == STARTING) && may_expire(x) && (p.lost[x] || away[x]) ->
       end_leased(x) }
  :: atomic { exits < EXITS && hears(x) && page[x] == LIVE && runs[x] && p.state[x] == ACTIVE ->
       exits++; done[x] = true; runs[x] = false; page[x] = DONE; p.state[x] = NONE;
       p.exited[x] = !is_formed && !p.apart }
  :: atomic { hears(x) && (page[x] == BEGUN || page[x] == LIVE) && !stands(x) ->
       assert(page[x] != LIVE || !formed || released[x] || given_up[x]);
       page[x] = (page[x] == LIVE && !is_fallen(x) -> LEAVING : STOPPING) }
  :: atomic { (page[x] == STOPPING || page[x] == LEAVING) && runs[x] -> runs[x] = false }
  :: atomic { hears(x) && (page[x] == STOPPING || page[x] == LEAVING) && !runs[x] ->
       p.state[x] = NONE; page[x] = (page[x] == LEAVING -> DONE : FAILED) }
  od
}

#define heard(h) (attested[h] || away[h] || written_off[h])

/* Nobody knows what it has, until it is written off in this epoch; or it was active as far as anybody knows. */
#define is_stuck(h) (away[h] && !attested[h] && (!written_off[h] || p.been_active[h]))

/* The other one may have been active when it left, or was. */
#define is_alone(h) (p.apart && (left_unheard || done[1 - (h)]))

#ifdef HEARD_ONCE
#define has_attested(h) true     /* in some epoch */
#else
#define has_attested(h) (attested[h])
#endif

inline write_off(h) {
  write_offs++; had_attested[h] = has_attested(h); attested[h] = false; written_off[h] = true; p.lost[h] = true; given_up[h] = true
}

proctype World() {
end:
  do
  :: atomic { failovers < FAILOVERS && !has_copy -> copy_data(1, 0); has_copy = true }
  :: atomic { failovers < FAILOVERS && has_copy ->
       failovers++; has_copy = false; copy_data(0, 1); clear_data(1); new_epoch() }
  :: atomic { !settled && heard(0) && heard(1) -> settled = true }
  :: atomic { aways < AWAYS && !away[0] -> aways++; away[0] = true; if :: for_ever[0] = true :: skip fi }
  :: atomic { aways < AWAYS && !away[1] -> aways++; away[1] = true; if :: for_ever[1] = true :: skip fi }
  :: atomic { away[0] && !for_ever[0] -> away[0] = false }
  :: atomic { away[1] && !for_ever[1] -> away[1] = false }
  :: atomic { write_offs < WRITE_OFFS && !written_off[0] -> write_off(0) }
  :: atomic { write_offs < WRITE_OFFS && !written_off[1] -> write_off(1) }

  /* Nothing more can happen: all that its owner wants of the gang runs, or nothing of it does. */
  :: atomic { timeout ->
       for (i : 0 .. 1) {
         assert(away[i] || runs[i] == (p.state[i] == ACTIVE));
         assert(away[i] || !runs[i] || !released[i])
       };
       for (i : 0 .. 1) {
         assert(!formed || runs[i] || released[i] || done[i] || away[i] || given_up[i]);
         assert(formed || is_alone(i) || !runs[i] || runs[1 - i] || away[i] || is_stuck(1 - i))
       };
       i = 0; break }
  od
}

init {
  atomic {
    settled = true; attested[0] = true; attested[1] = true; p.state[0] = CLAIMED; p.state[1] = CLAIMED;
    if :: keeps = true :: skip fi;
    run World(); run Schedulers(); run Owner(); run Host(0); run Host(1)
  }
}
