/*
 * One claim and its placements, while the store forgets, hosts are away, and its owner moves, shelves and releases it.
 *
 * README.md in this folder says which step stands for which script, what is left out, and what was found. Sizes come
 * with -D: PLACEMENTS (ever placed), HOSTS, FAILOVERS, WIPES, AWAYS (times that a host is cut off; its work goes on),
 * WRITE_OFFS, MOVES, FAILS (hooks that fail, leases that run out), SHELVES, RELEASES, FORGETS, LATE (calls of which a
 * copy arrives later), LOST_JOURNALS, ATTEMPTS (placements in a row that may fail). NEW: the claim begins `claimed`
 * instead of active. A rule is taken out with -D and its name; those stand in the code as #ifdef.
 *
 * Tokens grow with time, over epochs too, so the n-th placement has token n, and the token of now is `placed`. What a
 * placement is made with (token, root, host, from) never changes: it stands once, outside the store's data.
 */
#ifndef PLACEMENTS
#define PLACEMENTS 3
#endif
#ifndef HOSTS
#define HOSTS 2
#endif
#ifndef FAILOVERS
#define FAILOVERS 1
#endif
#ifndef WIPES
#define WIPES 0
#endif
#ifndef AWAYS
#define AWAYS 0
#endif
#ifndef WRITE_OFFS
#define WRITE_OFFS 0
#endif
#ifndef MOVES
#define MOVES 0
#endif
#ifndef FAILS
#define FAILS 0
#endif
#ifndef SHELVES
#define SHELVES 0
#endif
#ifndef RELEASES
#define RELEASES 1
#endif
#ifndef FORGETS
#define FORGETS 0
#endif
#ifndef ATTEMPTS
#define ATTEMPTS 9
#endif
#ifndef LATE
#define LATE 0
#endif
#ifndef LOST_JOURNALS
#define LOST_JOURNALS 0
#endif
#ifndef RESIZES
#define RESIZES 0
#endif
#ifndef SAME_HOST
#define SAME_HOST 0
#endif

/* The state of a placement in the store, by rank. */
#define NONE     0
#define CLAIMED  1
#define STARTING 2
#define ACTIVE   3
#define ENDING   4

/* On its host's page, which is durable. HELD: journalled; BEGUN: its hook may have run; LIVE: it runs, and the
 * store is to hear it; STOPPING: gone.lua is to follow, also where the store does not have it; TOMB: it was here. */
#define NO       0
#define HELD     1
#define BEGUN    2
#define LIVE     3
#define STOPPING 4
#define TOMB     5

#define N (PLACEMENTS + 1)   /* placement 0 is none */

typedef Data {               /* what a failover rolls back */
  bool known;                /* the claim's hash exists */
  byte current;
  byte closed;
  bool shelved;              /* why */
  bool released;
  byte pending;              /* root of what failed, and is to be placed again */
  byte failed;               /* in a row */
  byte state[N];
  bool size[N];              /* it was resized to more */
  bool lost[HOSTS];          /* written off, and has not attested since */
  byte lost_token[HOSTS]
}
Data d[2];                   /* the primary's, and what a replica has */
#define p d[0]

/* Of this epoch: a new one begins without. */
bool settled;
bool attested[HOSTS];
bool written_off[HOSTS];

byte placed;
byte root[N];
byte host[N];
byte from[N];                /* what a move or an evacuation was based on */

byte page[N];
bool size[N];                /* what its host gives it, durable */
byte resized_at[N];          /* the token of that */
bool runs[N];                /* the truth */
bool away[HOSTS];
bool new_journal[HOSTS];     /* another one than the store may know */
bool for_ever[HOSTS];

/* What was asked for, and said in this epoch. */
byte unwanted;               /* placements of a root up to this one were released or shelved */
byte release_at, shelve_at[2];
bool release_said, shelve_said[2];
bool was_active[N];
byte given_up[HOSTS];        /* the truth behind lost_token */

bool has_copy, is_silent, wants = true, keeps;
byte lost_journals, resizes, late_close, late_unshelve;
bool is_late_close, is_late_unshelve, late_confirm[N];
byte failovers, wipes, aways, write_offs, moves, fails, shelves;
hidden byte i, n, last;

#define later(a, b) (root[a] > root[b] || (root[a] == root[b] && (a) > (b)))
#ifdef OWN_TOKEN
#define is_closed(x) ((x) <= p.closed)
#else
#define is_closed(x) (root[x] <= p.closed)
#endif
#ifdef FENCE_ORDER
#define fence(x) (resized_at[x] != 0 -> 2 * resized_at[x] + 1 : 2 * (x))
#define after(a, b) (root[a] > root[b] || (root[a] == root[b] && fence(a) > fence(b)))
#elif defined(TOKEN_ORDER)
#define after(a, b) ((a) > (b))
#else
#define after(a, b) later(a, b)
#endif
#define is_passed(x) (after(p.current, x))
#define doomed(x) (is_closed(x) || is_passed(x))
#define stands(x) (p.state[x] >= CLAIMED && p.state[x] <= ACTIVE)
#define lives(x) (stands(x) && !doomed(x))


inline new_epoch() {
#if LATE
  for (i : 1 .. PLACEMENTS) { late_confirm[i] = false };
#endif
#ifndef LATE_ANY_EPOCH
  is_late_close = false; late_close = 0; is_late_unshelve = false; late_unshelve = 0;
#endif
  settled = false; release_said = false; shelve_said[0] = false; shelve_said[1] = false;
  for (i : 0 .. HOSTS - 1) { attested[i] = false; written_off[i] = false }
  i = 0
}

inline copy_data(to, src) {
  d[to].known = d[src].known; d[to].current = d[src].current; d[to].closed = d[src].closed;
  d[to].shelved = d[src].shelved; d[to].released = d[src].released; d[to].pending = d[src].pending;
  d[to].failed = d[src].failed;
  for (i : 0 .. N - 1) { d[to].state[i] = d[src].state[i]; d[to].size[i] = d[src].size[i] }
  for (i : 0 .. HOSTS - 1) { d[to].lost[i] = d[src].lost[i]; d[to].lost_token[i] = d[src].lost_token[i] }
  i = 0
}

inline clear_data(k) {
  d[k].known = false; d[k].current = 0; d[k].closed = 0; d[k].shelved = false; d[k].released = false;
  d[k].pending = 0; d[k].failed = 0;
  for (i : 0 .. N - 1) { d[k].state[i] = NONE; d[k].size[i] = false }
  for (i : 0 .. HOSTS - 1) { d[k].lost[i] = false; d[k].lost_token[i] = 0 }
  i = 0
}

/* Nothing is freed while its host runs it, unless that was written off and has not attested since. */
inline free(x) {
  assert(!runs[x] || (!attested[host[x]] && p.lost_token[host[x]] != 0));
  p.state[x] = NONE; p.size[x] = false
}

/* A guard that lets nothing happen would hide that nothing more can happen, so guards are exact. */
#define on(x, h) (p.state[x] != NONE && host[x] == (h))
#if PLACEMENTS == 3
#define some(it) (it(1) || it(2) || it(3))
#define some_on(h) (on(1, h) || on(2, h) || on(3, h))
#elif PLACEMENTS == 4
#define some(it) (it(1) || it(2) || it(3) || it(4))
#define some_on(h) (on(1, h) || on(2, h) || on(3, h) || on(4, h))
#else
#define some(it) (it(1) || it(2) || it(3) || it(4) || it(5))
#define some_on(h) (on(1, h) || on(2, h) || on(3, h) || on(4, h) || on(5, h))
#endif
#define is_there(x) (p.state[x] != NONE)
#define is_target(x) (from[x] == p.current && stands(x))

#ifdef FORGET_HELD
#define is_unheard(x) false
#else
#define is_unheard(x) (page[x] == HELD || (page[x] > HELD && page[x] <= STOPPING && !away[host[x]]))
#endif

/* Without SAME_HOST a placement is made where the store has none of this claim. */
#define can_be_on(h) (attested[h] && (SAME_HOST || !some_on(h)))
#if HOSTS > 2
#define has_host (placed < PLACEMENTS && (can_be_on(0) || can_be_on(1) || can_be_on(2)))
#else
#define has_host (placed < PLACEMENTS && (can_be_on(0) || can_be_on(1)))
#endif

/* A placement is not to go on. */
inline end_placement(x) {
  if
  :: p.lost[host[x]] || p.state[x] == CLAIMED -> free(x)
  :: !p.lost[host[x]] && p.state[x] != CLAIMED -> p.state[x] = ENDING
  fi
}

inline raise_current(x) { p.current = (after(x, p.current) -> x : p.current) }

/* One that was to come up has failed: if nothing lives, or as soon as nothing does, the claim is placed again. */
inline note_failed(x) {
  if
  :: !doomed(x) && p.failed + 1 < ATTEMPTS -> p.pending = root[x]; p.failed++
  :: else
  fi
}

/* ------------------------------------------------------------------------------------------------------ schedulers */

#ifdef EXPIRE_UNATTESTED
#define may_expire(x) true
#else
#ifdef EXPIRE_LOST_ONCE
#define may_expire(x) (attested[host[x]] || p.lost_token[host[x]] != 0)
#else
#define may_expire(x) (attested[host[x]] || written_off[host[x]])
#endif
#endif

#ifdef RECONCILE_UNATTESTED
#define may_reconcile(x) true
#else
#define may_reconcile(x) (attested[host[x]] || p.lost_token[host[x]] != 0)
#endif
/* Rule 5, and `ending` ones on hosts that were written off. */
#define is_due(x) (p.state[x] != NONE && doomed(x) && \
                   ((stands(x) && may_reconcile(x)) || p.lost[host[x]]))
#ifdef FREE_ENDING
#define is_left(x) (p.state[x] == ENDING)
#else
#define is_left(x) (p.state[x] == ENDING && p.lost[host[x]])
#endif

#ifdef ENDING_FAILS
#define FAILED_IS_PENDING true
#else
#define FAILED_IS_PENDING false
#endif
#ifdef FORGET_UNATTESTED
#define was_asked(h) true
#elif defined(FORGET_LOST_ONCE)
#define was_asked(h) (attested[h] || p.lost[h])
#else
#define was_asked(h) (attested[h] || written_off[h] || (p.lost[h] && p.lost_token[h] >= p.closed && p.closed != 0))
#endif
#if HOSTS > 2
#define all_asked (was_asked(0) && was_asked(1) && was_asked(2))
#else
#define all_asked (was_asked(0) && was_asked(1))
#endif
#ifdef MOVE_UNSETTLED
#define may_move true
#else
#define may_move settled
#endif
#ifdef AGAIN_UNSETTLED
#define may_try_again true
#else
#define may_try_again settled
#endif
#ifdef UNSHELVE_UNSETTLED
#define may_unshelve true
#else
#define may_unshelve settled
#endif

inline place(base, its_root) {
  placed++;
  if
  :: can_be_on(0) -> host[placed] = 0
  :: can_be_on(1) -> host[placed] = 1
#if HOSTS > 2
  :: can_be_on(2) -> host[placed] = 2
#endif
  fi;
  from[placed] = base; root[placed] = its_root;
  root[placed] = (root[placed] == 0 -> placed : root[placed]);
  p.state[placed] = CLAIMED; p.pending = 0
#ifdef CURRENT_WHEN_PLACED
  ; raise_current(placed)
#endif
}

/* A call that is sent again must not come to another answer while the first one's is being carried out. (A host
 * that is away may be passed over when the cell settles by time.) */
#define is_held(x) (page[x] >= HELD && page[x] <= LIVE && (attested[host[x]] || !settled) && \
                    given_up[host[x]] < (x) && \
                    !(attested[host[x]] && !lives(x)))

inline check_none_held() {
  for (i : 1 .. PLACEMENTS) { assert(!(i <= placed && root[i] > unwanted && is_held(i))) };
  i = 0
}

proctype Schedulers() {
end:
  do
  /* Reconcile: any scheduler, at any time. */
  :: atomic { is_due(1) -> end_placement(1) }
  :: atomic { is_due(2) -> end_placement(2) }
  :: atomic { is_due(3) -> end_placement(3) }
  :: atomic { is_left(1) -> free(1) }
  :: atomic { is_left(2) -> free(2) }
  :: atomic { is_left(3) -> free(3) }
#if PLACEMENTS > 3
  :: atomic { is_due(4) -> end_placement(4) }
  :: atomic { is_left(4) -> free(4) }
#endif
#if PLACEMENTS > 4
  :: atomic { is_due(5) -> end_placement(5) }
  :: atomic { is_left(5) -> free(5) }
#endif

  /* Move and evacuate. The same call again, based on the same token, is answered the first target. */
  :: atomic { moves < MOVES && has_host && p.current != 0 && p.state[p.current] == ACTIVE && !doomed(p.current) &&
              (attested[host[p.current]] || p.lost[host[p.current]]) && may_move && !some(is_target) ->
       for (i : 1 .. PLACEMENTS) { assert(!(from[i] == p.current && is_held(i))) };
       i = 0;
       moves++; place(p.current, root[p.current]) }

  /* What failed is placed again. */
  :: atomic { has_host && p.pending > p.closed && may_try_again && !some(lives) ->
       check_none_held(); place(0, p.pending) }

  /* Forgets. The replica does not lag that long, whoever would say it again has forgotten too, hosts that are there
   * have heard of it, and none holds what it did not begin within its lease. */
  :: atomic { FORGETS && p.known && !has_copy && settled && (p.released || (p.pending == 0 && !p.shelved)) &&
              !some(is_there) && !some(is_unheard) && all_asked ->
       p.known = false; p.current = 0; p.closed = 0; p.shelved = false; p.released = false; p.pending = 0;
       p.failed = 0; is_silent = true }
  od
}

/* ----------------------------------------------------------------------------------------------------------- owner */

#ifdef NO_CLOSED
#define NO_CLOSED_ (root[i] <= at)
#else
#define NO_CLOSED_ false
#endif
inline close_at(at) {
  p.known = true;
#ifndef NO_CLOSED
  p.closed = (at > p.closed -> at : p.closed);
#endif
  p.pending = (p.pending <= p.closed -> 0 : p.pending);
  for (i : 1 .. PLACEMENTS) {
    if
    :: stands(i) && (doomed(i) || NO_CLOSED_) ->
      if
#ifndef FREE_UNATTESTED
      :: p.state[i] == CLAIMED && !attested[host[i]] && !p.lost[host[i]] -> p.state[i] = ENDING
#endif
      :: else -> end_placement(i)
      fi
    :: else
    fi
  };
  i = 0
}

#ifdef NO_RESEND
#define RESENDS false
#else
#define RESENDS true
#endif
#ifdef REPEAT_AT_NOW
#define first_token(at) placed
#else
#define first_token(at) (at)
#endif

/* A copy of a shelve or an unshelve that is still under way may be carried out at any later time. A shelve says which
 * root it knew of, an unshelve which end it is to undo, and in which epoch. */
#define is_newer(x) (p.state[x] != NONE && root[x] > late_close)
#ifdef LATE_CLOSES
#define may_close_late true
#else
#define may_close_late (!some(is_newer) && root[p.current] <= late_close && p.pending <= late_close)
#endif
#ifdef LATE_UNSHELVES
#define may_unshelve_late true
#else
#define may_unshelve_late (p.closed == late_unshelve)
#endif

proctype Owner() {
end:
  do
  :: atomic { RELEASES && !keeps && release_at == 0 ->
       release_at = placed; release_said = true; unwanted = placed; close_at(placed); p.released = true }
  :: atomic { shelves < SHELVES && release_at == 0 && p.known && unwanted < placed ->
       shelve_at[shelves] = placed; shelve_said[shelves] = true; shelves++; unwanted = placed;
       close_at(placed); p.shelved = true; wants = false;
       if
       :: LATE && !is_late_close -> is_late_close = true; late_close = placed
       :: true
       fi }
  /* Unshelved: it has a root of its own. */
  :: atomic { p.shelved && !p.released && release_at == 0 && has_host && may_unshelve &&
              !some(is_there) ->
       check_none_held(); wants = true;
       if
       :: LATE && !is_late_unshelve -> is_late_unshelve = true; late_unshelve = p.closed
       :: true
       fi;
       place(0, 0) }
#if LATE
  :: atomic { is_late_close && may_close_late ->
       is_late_close = false; late_close = 0; close_at(placed); p.shelved = true }
  :: atomic { is_late_close -> is_late_close = false; late_close = 0 }
  :: atomic { is_late_unshelve && p.shelved && !p.released && has_host && may_unshelve && !some(is_there) &&
              may_unshelve_late ->
       is_late_unshelve = false; late_unshelve = 0; place(0, 0);
       unwanted = (wants && release_at == 0 -> unwanted : placed) }
  :: atomic { is_late_unshelve -> is_late_unshelve = false; late_unshelve = 0 }
#endif
  /* Said again once in each epoch. */
  :: atomic { RESENDS && release_at != 0 && !release_said && !is_silent ->
       release_said = true; close_at(first_token(release_at)); p.released = true }
  :: atomic { RESENDS && shelve_at[0] != 0 && !shelve_said[0] && !is_silent ->
       shelve_said[0] = true; close_at(first_token(shelve_at[0])); p.shelved = true }
  :: atomic { RESENDS && shelve_at[1] != 0 && !shelve_said[1] && !is_silent ->
       shelve_said[1] = true; close_at(first_token(shelve_at[1])); p.shelved = true }
  od
}

/* ----------------------------------------------------------------------------------------------------------- hosts */

#ifdef NO_LOST_TOKEN
#define is_lost_here(x) false
#else
#define is_lost_here(x) (x <= p.lost_token[host[x]])
#endif
#define word(x) (page[x] == HELD -> CLAIMED : (page[x] == BEGUN -> STARTING : (page[x] == LIVE -> ACTIVE : ENDING)))

/* Neither the journal nor the store remembers it: nobody can stop it but who looks at the host. */
#define is_orphan(x) (LOST_JOURNALS && page[x] == NO && p.state[x] == NONE)

inline attest_one(x) {
  if
#ifdef NO_TOMBSTONES
  :: page[x] == TOMB -> skip
#else
  :: page[x] == TOMB -> p.state[x] = NONE; p.size[x] = false
#endif
#ifdef LOST_IS_CLAIMED
  :: page[x] == NO && stands(x) -> p.state[x] = CLAIMED
#else
  :: page[x] == NO && stands(x) -> p.state[x] = (new_journal[host[x]] -> STARTING : p.state[x])
#endif
  :: page[x] >= HELD && page[x] <= STOPPING && p.state[x] != NONE ->
    p.state[x] = (word(x) > p.state[x] -> word(x) : p.state[x])
  :: page[x] >= HELD && page[x] <= STOPPING && p.state[x] == NONE ->
#ifdef DROP_AT_ATTEST
    if
    :: doomed(x) -> page[x] = STOPPING
    :: else -> p.state[x] = (is_lost_here(x) -> ENDING : word(x))
    fi;
#else
    p.state[x] = (is_lost_here(x) -> ENDING : word(x));
#endif
    p.known = true
  :: else
  fi;
  if
#ifndef STORES_SIZE
  :: p.state[x] != NONE && size[x] && !p.size[x] -> p.size[x] = true
#endif
  :: else
  fi;
  if
  :: p.state[x] == ACTIVE -> raise_current(x); was_active[x] = true
  :: else
  fi;
  assert(p.state[x] != NONE || !runs[x] || is_orphan(x));
  assert(p.state[x] == NONE || p.size[x] || !size[x])
}

proctype Host(byte h) {
  byte x;
end:
  do
  :: atomic { !away[h] && !attested[h] ->
       for (x : 1 .. PLACEMENTS) {
         if
         :: x <= placed && host[x] == h -> attest_one(x)
         :: else
         fi
       };
       x = 0;
       attested[h] = true; p.lost[h] = false }
  od
}

/* A host stops what was confirmed and what its owner wants only where a later one was confirmed, or was given up. */
inline check_stop(x) {
  if
  :: page[x] == LIVE && was_active[x] && root[x] > unwanted && given_up[host[x]] < x ->
    n = 0;
    for (i : 1 .. PLACEMENTS) {
      n = n + (i <= placed && later(i, x) && was_active[i] && root[i] > unwanted &&
               (page[i] == LIVE || given_up[host[i]] >= i) -> 1 : 0)
    };
    assert(n > 0);
    n = 0; i = 0
  :: else
  fi
}

#ifdef HELD_IS_CLAIMED
#define HOLDS_STARTED true
#else
#define HOLDS_STARTED false
#endif
inline confirm(x) {
  if
#ifndef CONFIRM_DOOMED
  :: doomed(x) -> p.state[x] = ENDING
#endif
  :: else -> assert(!(release_said && root[x] <= release_at));
    p.state[x] = ACTIVE; raise_current(x); was_active[x] = true; p.pending = 0; p.failed = 0
  fi
}

proctype Placement(byte x) {
end:
  do
  :: atomic { x <= placed && !away[host[x]] && attested[host[x]] && page[x] == NO && p.state[x] != NONE ->
       page[x] = (p.state[x] == ENDING -> STOPPING : (p.state[x] == CLAIMED || HOLDS_STARTED -> HELD : BEGUN)) }
  :: atomic { !away[host[x]] && attested[host[x]] && page[x] == HELD && stands(x) ->                        /* accept */
       p.state[x] = (p.state[x] == CLAIMED -> STARTING : p.state[x]); page[x] = BEGUN }
  :: atomic { page[x] == BEGUN && !runs[x] -> runs[x] = true }
  :: atomic { page[x] == BEGUN && runs[x] -> page[x] = LIVE }
  :: atomic { !away[host[x]] && attested[host[x]] && page[x] == LIVE && stands(x) && p.state[x] != ACTIVE ->
       confirm(x);
#if LATE
       if :: late_confirm[x] = true :: skip fi
#endif
       }
#if LATE
  /* A copy of the confirm, later in the same epoch. */
  :: atomic { late_confirm[x] ->
       late_confirm[x] = false;
       if
       :: attested[host[x]] && stands(x) -> confirm(x)
       :: else
       fi }
#endif
#if RESIZES
  /* Resized: more is counted first, and its host gives it then. */
  :: atomic { resizes < RESIZES && x <= placed && resized_at[x] == 0 && p.state[x] == ACTIVE && attested[host[x]] &&
              !doomed(x) ->
       resizes++; resized_at[x] = placed; p.size[x] = true }
  :: atomic { !away[host[x]] && attested[host[x]] && page[x] == LIVE && p.state[x] == ACTIVE && p.size[x] && !size[x] ->
       size[x] = true }
#endif
  /* Its hook fails. */
  :: atomic { fails < FAILS && !away[host[x]] && attested[host[x]] && page[x] == BEGUN && p.state[x] != NONE ->
       fails++; runs[x] = false; page[x] = TOMB;
       if
       :: FAILED_IS_PENDING || stands(x) -> p.state[x] = NONE; p.size[x] = false; note_failed(x)
       :: else -> p.state[x] = NONE; p.size[x] = false
       fi }
  :: atomic { fails < FAILS && away[host[x]] && page[x] == BEGUN -> fails++; page[x] = STOPPING }
  /* Its lease runs out. */
  :: atomic { x <= placed && fails < FAILS && (p.state[x] == CLAIMED || p.state[x] == STARTING) && may_expire(x) ->
       fails++; end_placement(x); note_failed(x) }

  /* It is to end, or the store does not have it any more: stop it, then gone.lua. */
  :: atomic { !away[host[x]] && attested[host[x]] && page[x] >= HELD && page[x] <= LIVE && !stands(x) ->
       check_stop(x); page[x] = STOPPING }
#ifdef WORK_BY_ID
  :: atomic { page[x] == STOPPING && runs[x] ->
       for (i : 1 .. PLACEMENTS) { runs[i] = runs[i] && !(i <= placed && host[i] == host[x]) };
       i = 0 }
#else
  :: atomic { page[x] == STOPPING && runs[x] -> runs[x] = false }
#endif
  :: atomic { !away[host[x]] && attested[host[x]] && page[x] == STOPPING && !runs[x] ->
       p.state[x] = NONE; p.size[x] = false; page[x] = TOMB }
  od
}

/* ------------------------------------------------------------------------------------- the store and its faults */

#define heard(h) (attested[h] || away[h] || written_off[h])
#if HOSTS > 2
#define all_heard (heard(0) && heard(1) && heard(2))
#else
#define all_heard (heard(0) && heard(1))
#endif

#if HOSTS > 2
#define any_for_ever (for_ever[0] || for_ever[1] || for_ever[2])
#else
#define any_for_ever (for_ever[0] || for_ever[1])
#endif

inline write_off(h) {
  write_offs++; attested[h] = false; written_off[h] = true; p.lost[h] = true; p.lost_token[h] = placed;
  given_up[h] = placed
}

proctype World() {
  byte x;
end:
  do
  :: atomic { failovers < FAILOVERS && !has_copy -> copy_data(1, 0); has_copy = true }
  :: atomic { failovers < FAILOVERS && has_copy ->
       failovers++; has_copy = false; copy_data(0, 1); clear_data(1); new_epoch() }
#if WIPES
  :: atomic { wipes < WIPES -> wipes++; clear_data(0); clear_data(1); has_copy = false; new_epoch() }
#endif
  :: atomic { !settled && all_heard -> settled = true }

  :: atomic { aways < AWAYS && !away[0] -> aways++; away[0] = true; if :: for_ever[0] = true :: skip fi }
  :: atomic { aways < AWAYS && !away[1] -> aways++; away[1] = true; if :: for_ever[1] = true :: skip fi }
#if HOSTS > 2
  :: atomic { aways < AWAYS && !away[2] -> aways++; away[2] = true; if :: for_ever[2] = true :: skip fi }
#endif
  :: atomic { away[0] && !for_ever[0] -> away[0] = false }
  :: atomic { away[1] && !for_ever[1] -> away[1] = false }
#if HOSTS > 2
  :: atomic { away[2] && !for_ever[2] -> away[2] = false }
#endif
  :: atomic { write_offs < WRITE_OFFS && (!p.lost[0] || !written_off[0]) -> write_off(0) }
  :: atomic { write_offs < WRITE_OFFS && (!p.lost[1] || !written_off[1]) -> write_off(1) }

#if LOST_JOURNALS
  /* An agent comes back without its journal; the work goes on, and its host counts as one that died. */
  :: atomic { lost_journals < LOST_JOURNALS -> if :: x = 0 :: x = 1 fi;
       lost_journals++; new_journal[x] = true; attested[x] = false; given_up[x] = placed;
       for (i : 1 .. PLACEMENTS) {
         page[i] = (i <= placed && host[i] == x -> NO : page[i]); size[i] = (i <= placed && host[i] == x -> 0 : size[i])
       };
       i = 0; x = 0 }
#endif

  /* Nothing more can happen. */
  :: atomic { timeout ->
       n = 0; last = 0;
       for (x : 1 .. PLACEMENTS) {
         if
         :: x <= placed && !away[host[x]] ->
           assert(p.state[x] == NONE || p.state[x] == ACTIVE);
           assert(runs[x] == (p.state[x] == ACTIVE) || is_orphan(x));
           assert(!runs[x] || is_orphan(x) || (x == p.current && root[x] > unwanted));
           n = n + (runs[x] && !is_orphan(x) -> 1 : 0)
         :: x <= placed && away[host[x]] ->
           assert(p.state[x] == NONE || !doomed(x) || (!p.lost[host[x]]))
         :: else
         fi;
         last = (was_active[x] && root[x] > unwanted && later(x, last) -> x : last)
       };
       assert(n <= 1);
       assert(n == 1 || last == 0 || given_up[host[last]] >= last || any_for_ever || placed == PLACEMENTS);
       n = 0; x = 0; last = 0; break }
  od
}

init {
  atomic {
    settled = true; placed = 1; root[1] = 1; p.known = true;
    for (i : 0 .. HOSTS - 1) { attested[i] = true };
#ifdef NEW
    p.state[1] = CLAIMED;
#else
    p.state[1] = ACTIVE; p.current = 1; page[1] = LIVE; runs[1] = true; was_active[1] = true;
#endif
    i = 0;
    if :: RELEASES -> keeps = true :: skip fi;
    run World(); run Schedulers(); run Owner();
    for (n : 0 .. HOSTS - 1) { run Host(n) };
    for (n : 1 .. PLACEMENTS) { run Placement(n) };
    n = 0
  }
}
