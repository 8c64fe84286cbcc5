/*
 * A gang of two: until both have been active, the failure of one ends both; from then on each lives by itself.
 *
 * README.md in this folder says what stands for what. Member x has one placement, on host x. Sizes come with -D:
 * FAILOVERS, AWAYS, WRITE_OFFS, FAILS (hooks that fail, leases that run out), RELEASES (1: the owner releases the gang,
 * 2: also one member of it, once the gang has been active). A rule is taken out with -D and its name.
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
  bool lost[2]
}
Data d[2];
#define p d[0]
bool settled;
bool attested[2];
bool written_off[2];

byte page[2];
bool runs[2];
bool away[2];
bool for_ever[2];
bool given_up[2];
bool formed;                 /* the truth: both were confirmed, and ran */
bool released[2], said[2];
bool has_copy, keeps;
byte failovers, aways, write_offs, fails;
hidden byte i;

inline new_epoch() {
  settled = false;
  for (i : 0 .. 1) { attested[i] = false; written_off[i] = false; said[i] = false };
  i = 0
}

inline copy_data(to, src) {
  for (i : 0 .. 1) {
    d[to].state[i] = d[src].state[i]; d[to].been_active[i] = d[src].been_active[i];
    d[to].closed[i] = d[src].closed[i]; d[to].lost[i] = d[src].lost[i]; d[to].fell[i] = d[src].fell[i]
  };
  i = 0
}

inline clear_data(k) {
  for (i : 0 .. 1) {
    d[k].state[i] = NONE; d[k].been_active[i] = false; d[k].closed[i] = false; d[k].fell[i] = false;
    d[k].lost[i] = false
  };
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
#else
#define is_heard(x) (attested[x])
#endif

#define has_failed(x) (!p.been_active[x] && p.state[x] == NONE && is_heard(x))

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
  /* The gang falls, which is found by what is there: one that has not been active stands no more, and its host, which
   * has attested in this epoch, has said so. */
  :: atomic { !is_formed && has_failed(0) && settled && !p.closed[1] -> fall(1) }
  :: atomic { !is_formed && has_failed(1) && settled && !p.closed[0] -> fall(0) }
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
inline attest(x) {
  if
  :: page[x] == FAILED || page[x] == DONE -> p.state[x] = NONE
  :: page[x] >= BEGUN && page[x] <= LEAVING -> p.state[x] = (word(x) > p.state[x] -> word(x) : p.state[x])
  :: page[x] == NO
  fi;
#ifdef FORGET_ACTIVE
  p.been_active[x] = p.been_active[x] || page[x] == LIVE;
#else
  p.been_active[x] = (p.been_active[x] || page[x] == LIVE || page[x] == LEAVING || page[x] == DONE) && !has_fallen(x);
#endif
  attested[x] = true; p.lost[x] = false
}

#define may_expire(x) (attested[x] || written_off[x])
#define hears(x) (!away[x] && attested[x])

inline fail(x) { fails++; page[x] = FAILED; runs[x] = false; p.state[x] = NONE }

proctype Host(byte x) {
end:
  do
  :: atomic { !away[x] && !attested[x] -> attest(x) }
  :: atomic { hears(x) && page[x] == NO && (p.state[x] == CLAIMED || p.state[x] == STARTING) ->
       p.state[x] = STARTING; page[x] = BEGUN }
  :: atomic { hears(x) && page[x] == NO && p.state[x] == ENDING -> p.state[x] = NONE; page[x] = FAILED }
  :: atomic { page[x] == BEGUN && !runs[x] -> runs[x] = true }
  :: atomic { hears(x) && page[x] == BEGUN && runs[x] && stands(x) && !p.closed[x] ->
       p.state[x] = ACTIVE; p.been_active[x] = true; page[x] = LIVE;
       formed = formed || (page[0] == LIVE && page[1] == LIVE) }
  :: atomic { hears(x) && page[x] == BEGUN && fails < FAILS && p.state[x] != NONE -> fail(x) }
  :: atomic { fails < FAILS && (p.state[x] == CLAIMED || p.state[x] == STARTING) && may_expire(x) ->
       fails++; end_member(x) }
  :: atomic { hears(x) && (page[x] == BEGUN || page[x] == LIVE) && !stands(x) ->
       assert(page[x] != LIVE || !formed || released[x] || given_up[x]);
       page[x] = (page[x] == LIVE && !is_fallen(x) -> LEAVING : STOPPING) }
  :: atomic { (page[x] == STOPPING || page[x] == LEAVING) && runs[x] -> runs[x] = false }
  :: atomic { hears(x) && (page[x] == STOPPING || page[x] == LEAVING) && !runs[x] ->
       p.state[x] = NONE; page[x] = (page[x] == LEAVING -> DONE : FAILED) }
  od
}

#define heard(h) (attested[h] || away[h] || written_off[h])

inline write_off(h) {
  write_offs++; attested[h] = false; written_off[h] = true; p.lost[h] = true; given_up[h] = true
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
       assert(for_ever[0] || for_ever[1] || given_up[0] || given_up[1] || formed || runs[0] == runs[1]);
       assert(for_ever[0] || for_ever[1] || given_up[0] || given_up[1] || !formed || released[0] || runs[0]);
       assert(for_ever[0] || for_ever[1] || given_up[0] || given_up[1] || !formed || released[1] || runs[1]);
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
