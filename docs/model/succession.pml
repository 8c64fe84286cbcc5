/*
 * A claim that another succeeds, by a move or an evacuation, while the store forgets and the host of the first is away.
 *
 * README.md in this folder says which step stands for which file, and what is left out. Claim 0 is the one that its
 * owner knows, active on host 0 from the beginning; claim x, its target, is placed on host x. Sizes come with -D:
 * TARGETS, FAILOVERS, WIPES, WRITE_OFFS (of host 0, each with evacuation), AWAY (1: host 0 may be cut off, for a while
 * or for ever; its work goes on), FORGETS (1: remember_s may pass), MOVES (1: it is also moved while its host is
 * there), DEADLINE (1: a move may take too long). A rule is taken out with -D and its name.
 */
#ifndef TARGETS
#define TARGETS 1
#endif
#ifndef FAILOVERS
#define FAILOVERS 1
#endif
#ifndef WRITE_OFFS
#define WRITE_OFFS 1
#endif
#ifndef AWAY
#define AWAY 1
#endif
#ifndef MOVES
#define MOVES 0
#endif
#ifndef DEADLINE
#define DEADLINE 0
#endif
#ifndef WIPES
#define WIPES 0
#endif
#ifndef FORGETS
#define FORGETS 0
#endif
#ifndef NO_POINTER
#define NO_POINTER false
#endif
#ifndef WHY_RELEASED
#define WHY_RELEASED false
#endif
#define N (TARGETS + 1)
#define MOST_EPOCHS (1 + FAILOVERS + WIPES + 4)

/* The state of a claim in the store. */
#define NONE     0
#define CLAIMED  1
#define STARTING 2
#define ACTIVE   3
#define ENDING   4
#define ENDED    5

/* On its host's page. */
#define NO       0
#define HELD     1
#define BEGUN    2
#define LIVE     3
#define STOPPING 4
#define LOSING   5

#define LOST_HOST 255      /* epoch of a host that was written off and has not attested since */
#define NOBODY    255

typedef Store {
  byte epoch;
  bool fenced;
  bool settled;
  byte seq;
  byte attested[N];
  byte written_off;        /* of host 0, as the next two */
  byte lost_token;
  bool leaving;
  bool newcomer;           /* another claim has the room that claim 0 has left on host 0 */
  byte state[N];
  bool released[N];        /* why */
  byte token[N];
  bool former[N];          /* it is to succeed claim 0 */
  bool arrived[N];
  bool chore[N];
  bool final;              /* of claim 0, as the next two: all that goes by its id was given up */
  byte next;
  byte next_token
}
Store s[2];                /* the primary, and what a replica has */
#define p s[0]

typedef Host {
  byte open;
  byte page;
  byte token;
  byte tomb;
  bool runs;               /* the truth */
  bool away;
  bool newcomer            /* the truth: that one's work runs */
}
Host a[N];

byte epochs = 1, failovers, write_offs, wipes;
bool has_copy, was_away, for_ever, is_unwanted, is_silent;
#ifdef SAID_OF_ONE
bool given[N];             /* its owner was answered that this one is given back */
#endif
byte said;                 /* the epoch that was told last that it is given up */
bool used[N];              /* ids of targets are made for one call */
hidden byte i, n, gives, points, closes, clears, waits;

#define answers (p.fenced)
#define hears(h) (answers && p.attested[h] == p.epoch)
#define stands(x) (p.state[x] >= CLAIMED && p.state[x] <= ACTIVE)
#define here(x) (p.state[x] >= CLAIMED && p.state[x] <= ENDING)
#define over(x) (p.state[x] >= ENDING)
#define placed(x) (here(x) && p.token[x] == a[x].token)
/* claim_state.lua: nothing may be said about a claim of this host */
#define obstacle(h) (p.attested[h] != p.epoch && \
                     !(h == 0 && (p.written_off == p.epoch || (p.attested[0] == LOST_HOST && p.leaving))))

inline copy_store(to, from) {
  s[to].epoch = s[from].epoch; s[to].fenced = s[from].fenced; s[to].settled = s[from].settled;
  s[to].seq = s[from].seq; s[to].written_off = s[from].written_off; s[to].lost_token = s[from].lost_token;
  s[to].leaving = s[from].leaving; s[to].newcomer = s[from].newcomer; s[to].next = s[from].next;
  s[to].next_token = s[from].next_token; s[to].final = s[from].final;
  for (i : 0 .. N - 1) {
    s[to].attested[i] = s[from].attested[i]; s[to].state[i] = s[from].state[i];
    s[to].released[i] = s[from].released[i]; s[to].token[i] = s[from].token[i];
    s[to].former[i] = s[from].former[i]; s[to].arrived[i] = s[from].arrived[i]; s[to].chore[i] = s[from].chore[i]
  }
  i = 0
}

inline clear_store(k) {
  s[k].epoch = 0; s[k].fenced = false; s[k].settled = false; s[k].seq = 0; s[k].written_off = 0;
  s[k].lost_token = 0; s[k].leaving = false; s[k].newcomer = false; s[k].next = 0; s[k].next_token = 0;
  s[k].final = false;
  for (i : 0 .. N - 1) {
    s[k].attested[i] = 0; s[k].state[i] = NONE; s[k].released[i] = false; s[k].token[i] = 0;
    s[k].former[i] = false; s[k].arrived[i] = false; s[k].chore[i] = false
  }
  i = 0
}

inline mint() {
  epochs++;
  assert(epochs <= MOST_EPOCHS);
  p.epoch = epochs; p.fenced = true; p.settled = false
}

/* tombstone.lua: its end is a chore where it succeeds another, or another it. */
inline bury(x) {
  p.state[x] = ENDED;
#ifndef NO_CHORES
  p.chore[x] = (x != 0 || p.next != 0)
#endif
}

/* give_back.lua */
inline give_back(x, is_release) {
  if
  :: p.state[x] == CLAIMED || (here(x) && p.attested[x] != p.epoch) ->
    p.released[x] = is_release; bury(x)
  :: p.state[x] != CLAIMED && stands(x) && p.attested[x] == p.epoch -> p.released[x] = is_release; p.state[x] = ENDING
  :: else
  fi
}

/* release.lua, by the owner's id, which has led here */
inline release(x) {
  if
  :: x == 0 && over(0) && p.next == 0 -> p.released[0] = true
  :: else -> give_back(x, true)
  fi;
  if
#ifndef NO_GIVE_UP
  :: x != 0 -> p.final = true; p.chore[x] = true
#endif
  :: x == 0 && p.next != 0 -> p.chore[p.next] = true
  :: else
  fi
}

/* Another has succeeded it: one that was active, and this one is not, or was placed before it. */
#define is_up(x) (p.state[x] == ACTIVE || p.arrived[x])
#ifdef ANY_POINTER
#define has_rival(x) (over(0) && p.next != 0 && p.next != x)
#else
#define has_rival(x) (over(0) && p.next != x && p.next_token != 0 && !(is_up(x) && p.token[x] > p.next_token))
#endif

/* One that is not active takes its place: where all hosts are heard, and none has it. */
#define is_told(h) (hears(h) || (h == 0 && p.written_off == p.epoch))
#if TARGETS > 1
#define all_told (is_told(0) && is_told(1) && is_told(2))
#else
#define all_told (is_told(0) && is_told(1))
#endif
#ifdef ANY_END
#define falls_to_it (over(0) || (p.state[0] == NONE && all_told))
#else
#define falls_to_it (p.state[0] == NONE && all_told)
#endif

/* disowned_step() of succession.lua: its owner has given up the whole. */
#define is_disowned (over(0) && (p.released[0] || p.final))

/* succession.lua: what is due between target x and claim 0. */
inline pending_step(x) {
  if
  :: p.state[x] == ENDED ->
    points = p.arrived[x] && p.released[x]; gives = (points -> 0 : NOBODY);
    clears = !points && p.next == x; closes = true
  :: p.state[x] != ENDED && has_rival(x) -> gives = x
  :: p.state[x] != ENDED && !has_rival(x) && is_disowned -> gives = x; n = 1
  :: p.state[x] != ENDED && !has_rival(x) && !is_disowned ->
    if
#ifdef FINISH_EARLY
    :: true -> gives = 0; points = true; closes = true
#else
    :: is_up(x) || falls_to_it -> gives = 0; points = true; closes = true
    :: !is_up(x) && !falls_to_it -> waits = true
    :: !is_up(x) && !falls_to_it && !over(0) && DEADLINE -> gives = x
#endif
    fi
  fi
}

inline later_step(x) {
  if
  :: p.state[x] == NONE || p.state[x] == ENDED -> clears = p.next == x && !over(0)
  :: p.state[x] == ENDING || (over(0) && p.next == x)
  :: else ->
    if
    :: over(0) && p.next != 0 && p.token[x] <= p.next_token -> gives = x
    :: else -> gives = 0; points = true
    fi
  fi
}

/* succeed.lua with conclude.lua. It may be called at any time, by anyone. */
inline succeed(x) {
  if
  :: (here(x) && obstacle(x)) || (here(0) && obstacle(0)) ||
     ((p.state[x] == NONE || p.state[0] == NONE) && !p.settled)                                         /* ATTEST */
  :: p.state[x] == NONE && p.state[0] == NONE && p.settled -> p.chore[x] = false
  :: else ->
    gives = NOBODY; points = false; closes = false; clears = false; waits = false; n = 0;
    if
    :: p.final && stands(0) -> gives = 0; n = 1
    :: is_disowned && !(p.final && stands(0)) && stands(x) -> gives = x; n = 1
    :: !(p.final && stands(0)) && !(is_disowned && stands(x)) ->
      if
      :: p.former[x] -> pending_step(x)
      :: else -> later_step(x)
      fi
    fi;
    if
    :: waits -> p.chore[x] = false; p.chore[0] = p.chore[0] && p.state[0] != ENDED
    :: !waits ->
      if
      :: points ->
        if
        :: p.next != 0 && p.next != x -> p.chore[p.next] = true                                         /* a rival */
        :: else
        fi;
        p.next = x; p.next_token = p.token[x]
      :: else
      fi;
      if
      :: gives != NOBODY && stands(gives) -> give_back(gives, n == 1)
      :: else
      fi;
      if
      :: gives == x -> p.chore[0] = false; p.chore[x] = p.chore[x] && p.state[x] == ENDED
      :: else ->
        if
        :: points && p.state[0] == NONE && !NO_POINTER ->
          p.state[0] = ENDED; p.token[0] = p.token[x]; p.released[0] = false
        :: else
        fi;
        if
        :: clears -> p.next = 0; p.next_token = 0
        :: else
        fi;
        if
        :: closes -> p.former[x] = false; p.arrived[x] = false
        :: else
        fi;
        p.chore[x] = p.chore[x] && p.former[x];
        p.chore[0] = p.chore[0] && !(p.next == 0 || p.next == x)
      fi
    fi;
    gives = 0; points = false; closes = false; clears = false; waits = false; n = 0
  fi
}

/* ------------------------------------------------------------------------------------------------------ schedulers */

/* Each of them may die between any two steps; the next one goes on by what is in the store. */
proctype Schedulers() {
  byte x;
end:
  do
  /* A target is placed: by claim.lua, which looks at the former too (claim_former.lua). */
  :: atomic { answers && !over(0) && p.state[0] != NONE && !obstacle(0) && p.next == 0 && (MOVES || p.leaving) ->
       x = 1;
       do
       :: x < N && used[x] -> x++
       :: else -> break
       od;
       if
       :: x < N && hears(x) ->
         used[x] = true; p.seq++; p.state[x] = CLAIMED; p.token[x] = p.epoch * 16 + p.seq;
         p.former[x] = true; p.released[x] = false; p.next = x
       :: else
       fi;
       x = 0 }
  /* Chores. */
  :: atomic { answers && p.chore[1] -> succeed(1) }
#if TARGETS > 1
  :: atomic { answers && p.chore[2] -> succeed(2) }
#endif
  :: atomic { answers && p.chore[0] && p.next != 0 -> x = p.next; succeed(x); x = 0 }
  :: atomic { answers && p.chore[0] && p.next == 0 -> p.chore[0] = false }

#if FORGETS
  /* What has ended is forgotten in its time; from then on nobody says again that it was given back.
   * Assumed: by then a target has come up, or failed to, and hosts that are there have heard what has ended. */
#define has_heard(h) (a[h].away || (a[h].page == NO && !a[h].runs))
  :: atomic { answers && p.settled && !has_copy && p.state[0] == ENDED && !p.chore[0] && !p.chore[1] && !p.former[1] &&
              has_heard(0) && (over(1) || p.state[1] == NONE) && has_heard(1) &&
              (p.next == 0 || p.state[p.next] == NONE || p.state[p.next] == ENDED) ->
       p.state[0] = NONE; p.token[0] = 0; p.released[0] = false; p.next = 0; p.next_token = 0;
       p.final = false; is_silent = is_unwanted }
  :: atomic { answers && p.settled && !has_copy && p.state[1] == ENDED && !p.chore[1] && has_heard(1) ->
       p.state[1] = NONE; p.token[1] = 0; p.released[1] = false }
#endif

  /* expire.lua */
  :: atomic { answers && (p.state[1] == CLAIMED || p.state[1] == STARTING) && !obstacle(1) -> give_back(1, false) }
#if TARGETS > 1
  :: atomic { answers && (p.state[2] == CLAIMED || p.state[2] == STARTING) && !obstacle(2) -> give_back(2, false) }
#endif
  od
}

/* placings.py: the one that the work is at. */
#define present (over(0) && !p.released[0] && p.next != 0 && p.state[p.next] != NONE -> p.next : 0)

proctype Owner() {
  byte x;
end:
  do
  :: atomic { answers && !is_unwanted && p.state[present] != NONE &&
              (p.state[present] == ENDED || !obstacle(present)) ->
       x = present; release(x); is_unwanted = true; said = p.epoch;
#ifdef SAID_OF_ONE
       given[x] = true;
#endif
       x = 0 }
  /* Said again once in each epoch, by the owner's id: of the claim that the work is at by then. */
#ifdef SAID_OF_ONE
  :: atomic { answers && given[0] && stands(0) && !obstacle(0) -> give_back(0, true) }
  :: atomic { answers && given[1] && stands(1) && !obstacle(1) -> give_back(1, true) }
#else
  :: atomic { answers && is_unwanted && !is_silent && said != p.epoch && stands(present) && !obstacle(present) ->
       x = present; release(x); said = p.epoch; x = 0 }
#endif
  od
}

/* ---------------------------------------------------------------------------------------------------------- hosts */

/* is_passed() of attest_merge.lua: is this host's placing over? */
#ifdef NO_LOST_TOKEN
#define by_host(h) false
#else
#define by_host(h) (h == 0 && a[0].token <= p.lost_token)
#endif
#define by_pointer(h) (h == 0 && a[0].token <= p.next_token)
#define is_passed(h) (a[h].token <= p.token[h] || by_host(h) || by_pointer(h))
#define word(h) (a[h].page == HELD -> CLAIMED : (a[h].page == BEGUN -> STARTING : \
                 (a[h].page == LIVE -> ACTIVE : ENDING)))

/* attest.lua, and what it has the agent do. */
inline attest(h) {
  n = word(h);
  if
  :: a[h].page == NO || a[h].page == LOSING ->
    if
    :: here(h) && a[h].tomb >= p.token[h] ->
      p.released[h] = p.released[h] || (p.state[h] != ENDING && WHY_RELEASED); bury(h)
    :: here(h) && a[h].tomb < p.token[h] ->
      p.state[h] = (p.state[h] == ENDING -> ENDING : CLAIMED);
      p.arrived[h] = false
    :: else
    fi
  :: a[h].page != NO && a[h].page != LOSING && here(h) ->
    p.released[h] = p.released[h] || (n == ENDING && p.state[h] != ENDING && WHY_RELEASED);
    p.state[h] = (n > p.state[h] || a[h].token > p.token[h] -> n : p.state[h]);
    p.token[h] = (a[h].token > p.token[h] -> a[h].token : p.token[h])
  :: a[h].page != NO && a[h].page != LOSING && !here(h) && !is_passed(h) && !(h == 0 && p.written_off == p.epoch) ->
    p.state[h] = n; p.token[h] = a[h].token; p.former[h] = h != 0; p.arrived[h] = false; p.released[h] = false;
    p.chore[h] = h != 0;
    if
    :: h == 0 -> p.next = 0; p.next_token = 0; p.final = false
    :: else
    fi
  :: else -> a[h].page = LOSING                                                                            /* drop */
  fi;
  if
  :: p.former[h] && p.state[h] == ACTIVE -> p.arrived[h] = true; p.chore[h] = true
  :: else
  fi;
  if
  :: h == 0 -> p.leaving = false; p.newcomer = p.newcomer || a[0].newcomer
  :: else
  fi;
  n = 0;
  p.attested[h] = p.epoch
}

#ifdef NO_DOUBLE_CHECK
#define fits true
#else
#define fits (a[0].page == NO)
#endif

proctype Agent(byte h) {
end:
  do
  /* Any answer: another epoch, or ATTEST. */
  :: atomic { !a[h].away && answers && a[h].open != 0 && !(hears(h) && a[h].open == p.epoch) -> a[h].open = 0 }
  :: atomic { !a[h].away && answers && a[h].open == 0 -> attest(h); a[h].open = p.epoch }

  /* accept.lua, the hook, confirm.lua */
  :: atomic { !a[h].away && hears(h) && a[h].open == p.epoch && a[h].page == NO && here(h) ->
       if
       :: p.state[h] == ENDING -> a[h].page = STOPPING; a[h].token = p.token[h]
       :: p.state[h] != ENDING && p.token[h] > a[h].tomb -> a[h].page = HELD; a[h].token = p.token[h]
       :: p.state[h] != ENDING && p.token[h] <= a[h].tomb -> mint()                 /* the store has lost its end */
       fi }
  :: atomic { !a[h].away && hears(h) && a[h].open == p.epoch && a[h].page == HELD && placed(h) && stands(h) ->
       p.state[h] = (p.state[h] == CLAIMED -> STARTING : p.state[h]); a[h].page = BEGUN }
  :: atomic { a[h].page == BEGUN && !a[h].runs -> assert(!a[h].newcomer); a[h].runs = true }
  :: atomic { !a[h].away && hears(h) && a[h].open == p.epoch && a[h].page == BEGUN && a[h].runs && placed(h) &&
              stands(h) ->
       p.state[h] = ACTIVE; a[h].page = LIVE;
       if
       :: p.former[h] -> p.arrived[h] = true;
#ifndef NO_CHORES
         p.chore[h] = true
#endif
       :: else
       fi }

  /* It is to end: stop it, then gone.lua. Or it is not there any more: only stop it. */
  :: atomic { !a[h].away && hears(h) && a[h].open == p.epoch && a[h].page >= HELD && a[h].page <= LIVE && placed(h) &&
              p.state[h] == ENDING -> a[h].page = STOPPING }
  :: atomic { !a[h].away && hears(h) && a[h].open == p.epoch && a[h].page >= HELD && a[h].page <= LIVE && !placed(h) ->
       a[h].page = LOSING }
  :: atomic { a[h].page >= STOPPING && a[h].runs -> a[h].runs = false }
  :: atomic { a[h].page == LOSING && !a[h].runs -> a[h].tomb = a[h].token; a[h].token = 0; a[h].page = NO }
  :: atomic { !a[h].away && hears(h) && a[h].open == p.epoch && a[h].page == STOPPING && !a[h].runs ->
       if
       :: placed(h) -> bury(h)
       :: else
       fi;
       a[h].tomb = a[h].token; a[h].token = 0; a[h].page = NO }

  /* Another claim is given the room on host 0; its agent looks whether there is room. */
  :: atomic { h == 0 && hears(0) && !here(0) && !p.newcomer -> p.newcomer = true }
  :: atomic { h == 0 && !a[0].away && hears(0) && a[0].open == p.epoch && p.newcomer && !a[0].newcomer && fits ->
       assert(!a[0].runs); a[0].newcomer = true }
  od
}

/* ------------------------------------------------------------------------------------- the store and its faults */

#define heard(h) (hears(h) || a[h].away || (h == 0 && p.written_off == p.epoch))
#if TARGETS > 1
#define all_heard (heard(0) && heard(1) && heard(2))
#else
#define all_heard (heard(0) && heard(1))
#endif

/* Work stands, or its host is still to say that it does. */
#define is_safe(x) (stands(x) || (p.attested[x] != p.epoch && a[x].page >= HELD && a[x].page <= LIVE))
#if TARGETS > 1
#define any_safe (is_safe(0) || is_safe(1) || is_safe(2))
#else
#define any_safe (is_safe(0) || is_safe(1))
#endif

proctype World() {
  byte x;
end:
  do
  :: atomic { failovers < FAILOVERS && !has_copy -> copy_store(1, 0); has_copy = true }
  :: atomic { failovers < FAILOVERS && has_copy ->
       failovers++; has_copy = false; copy_store(0, 1); clear_store(1); p.fenced = false }
#if WIPES
  :: atomic { wipes < WIPES -> wipes++; clear_store(0); clear_store(1); has_copy = false }
#endif
  :: atomic { !p.fenced -> mint() }
  :: atomic { answers && !p.settled && all_heard -> p.settled = true }

  /* Host 0 is cut off; its work goes on. An operator writes it off, rightly or not. */
  :: atomic { AWAY && !was_away -> was_away = true; a[0].away = true; if :: for_ever = true :: skip fi }
  :: atomic { a[0].away && !for_ever -> a[0].away = false }
  :: atomic { answers && write_offs < WRITE_OFFS && p.attested[0] != LOST_HOST && p.attested[0] != 0 -> /* lost.lua */
       write_offs++; p.attested[0] = LOST_HOST; p.written_off = p.epoch; p.lost_token = p.epoch * 16 + p.seq;
       p.leaving = true }

  /* What its owner has not given back is never without a place. */
  :: atomic { answers && !is_unwanted && !any_safe -> assert(false) }

  /* Nothing more can happen. */
  :: atomic { timeout ->
       n = 0;
       for (x : 0 .. N - 1) {
         assert(!p.chore[x] || for_ever);
         /* Both at once only while the first one's host is away; else the one that its owner finds runs. */
         n = n + (a[x].runs && !a[x].away -> 1 : 0);
         assert(a[x].away || !a[x].runs || (p.state[x] == ACTIVE && present == x))
       };
       assert(n <= 1);
       assert(!is_unwanted || n == 0);
       assert(is_unwanted || n == 1 || a[0].away);
       n = 0; x = 0; break }
  od
}

init {
  atomic {
    p.epoch = 1; p.fenced = true; p.settled = true; p.seq = 1;
    for (i : 0 .. N - 1) { p.attested[i] = 1; a[i].open = 1 };
    p.state[0] = ACTIVE; p.token[0] = 17; a[0].page = LIVE; a[0].token = 17; a[0].runs = true;
    i = 0;
    run World(); run Schedulers(); run Owner();
    for (n : 0 .. N - 1) { run Agent(n) };
    n = 0
  }
}
