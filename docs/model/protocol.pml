/*
 * A claim's life while the store forgets: claim.lua to gone.lua, the fence, attestation, and the agent with its journal.
 *
 * README.md in this folder says which step stands for which file, what is left out, and what was found. Sizes come with
 * -D: HOSTS, CLAIMS, CAPACITY (claims that fit on a host), FAILOVERS, WIPES, CRASHES, REFUSALS (work that its hook
 * cannot begin), LIVES (how often an id is used), OWN (1: the ids are the callers'), OLD_PRIMARY, JOIN (host 0 first
 * reports while the model runs), LATE (an epoch may settle by time before a host that lives has attested). A rule is
 * taken out with -D and its name; those stand in the code as #ifdef.
 */
#ifndef HOSTS
#define HOSTS 1
#endif
#ifndef CLAIMS
#define CLAIMS 1
#endif
#ifndef CAPACITY
#define CAPACITY 1
#endif
#ifndef FAILOVERS
#define FAILOVERS 1
#endif
#ifndef WIPES
#define WIPES 0
#endif
#ifndef CRASHES
#define CRASHES 0
#endif
#ifndef REFUSALS
#define REFUSALS 0
#endif
#ifndef LIVES
#define LIVES 1
#endif
#ifndef OWN
#define OWN 1
#endif

/* Epochs are numbered as they are minted: TIME grows, and the replication id keeps two of one millisecond apart. */
#define MOST_EPOCHS (1 + FAILOVERS + WIPES + 4)

/* The state of a claim in the store, by rank as in attest_merge.lua. */
#define NONE     0
#define CLAIMED  1
#define STARTING 2
#define ACTIVE   3
#define ENDING   4
#define ENDED    5

/* The state of a claim on its host's page. HELD: journalled; BEGUN: its hook may have run; RUNS: its hook said so;
 * LIVE: the store has heard it; STOPPING. */
#define NO       0
#define HELD     1
#define BEGUN    2
#define RUNS     3
#define LIVE     4
#define STOPPING 5

/* What the store answered to the call that is under way. */
#define OK      1
#define IS_ENDING 2
#define GONE    3

/* A claim that cannot stay on its host: stop it; nothing of it is left; clean up and say that it failed; say so. */
#define LOSING   1
#define LOST     2
#define CLEANING 3
#define UNBEGUN  4

/* Who asks for a claim: not yet; a call is under way; it waits until=active; it was told active; it was told not, or has
 * given it back; it gave it back and was told that there is none. */
#define IDLE     0
#define SENT     1
#define WAITING  2
#define ACKED    3
#define UNWANTED 4
#define TOLD     5

/* Servers: the primary, the one that it took over from and that goes on answering, and the replica's copy. */
#define NEW  0
#define OLD  1
#define COPY 2

typedef Store {
  byte epoch;              /* of meta */
  bool fenced;             /* replid of meta is the server's: the epoch is this data's */
  bool settled;
  bool by_time;            /* wiped: nobody knows which hosts are to be heard */
  byte waiting;            /* unattested */
  byte seq;
  bool known[HOSTS];
  byte attested[HOSTS];
  byte state[CLAIMS];
  byte host[CLAIMS];
  byte token[CLAIMS]
}
Store s[3];

typedef Page {             /* in memory at once, in the journal once it is durable */
  byte state[CLAIMS];
  byte token[CLAIMS];
  byte tomb[CLAIMS];       /* token of the tombstone */
  byte attested
}

typedef Host {
  Page page;
  Page journal;
  byte left;               /* durable */
  byte open;               /* the epoch that it is open in */
  byte met;
  byte server;             /* one connection for all that it says */
  byte saying;             /* 0, 1: attestation built, 2: carried out */
  byte said_epoch;
  Page said;
  bool anew[CLAIMS];       /* journalled by this very process */
  bool accepted[CLAIMS];
  bool hook[CLAIMS];       /* the start hook is under way */
  byte reply[CLAIMS];
  byte reply_epoch[CLAIMS];
  byte losing[CLAIMS];     /* what is left to be done with one that cannot stay */
  bool drop[CLAIMS];
  bool runs[CLAIMS]        /* the truth: there is work */
}
Host a[HOSTS];

typedef Caller {
  byte state;
  byte epoch;              /* that its call was decided in */
  byte server;
  byte host;               /* that confirmed */
  bool keeps;              /* never gives it back */
  byte lives
}
Caller c[CLAIMS];

byte epochs = 1, has_asked;
bool has_copy, has_old;
byte failovers, wipes, crashes, refusals;
hidden byte i, n, held;

inline mint(k, wiped) {
  epochs++;
  assert(epochs <= MOST_EPOCHS);
  s[k].by_time = (wiped) || (s[k].by_time && !s[k].settled);
  s[k].epoch = epochs;
  s[k].fenced = true;
  n = 0;
  for (i : 0 .. HOSTS - 1) { n = n + (s[k].known[i] -> 1 : 0) }
  s[k].waiting = (s[k].by_time -> 0 : n);
  s[k].settled = !s[k].by_time && n == 0;
  i = 0; n = 0
}

/* Who meets an epoch that it has left or outrun has the store start a higher one (raise_epoch.lua). */
inline raise(k) { mint(k, false) }

inline copy_store(to, from) {
  s[to].epoch = s[from].epoch; s[to].fenced = s[from].fenced; s[to].settled = s[from].settled;
  s[to].by_time = s[from].by_time; s[to].waiting = s[from].waiting; s[to].seq = s[from].seq;
  for (i : 0 .. HOSTS - 1) { s[to].known[i] = s[from].known[i]; s[to].attested[i] = s[from].attested[i] }
  for (i : 0 .. CLAIMS - 1) {
    s[to].state[i] = s[from].state[i]; s[to].host[i] = s[from].host[i]; s[to].token[i] = s[from].token[i]
  }
  i = 0
}

inline wipe_store(k) {
  s[k].epoch = 0; s[k].fenced = false; s[k].settled = false; s[k].by_time = false; s[k].waiting = 0; s[k].seq = 0;
  for (i : 0 .. HOSTS - 1) { s[k].known[i] = false; s[k].attested[i] = 0 }
  for (i : 0 .. CLAIMS - 1) { s[k].state[i] = NONE; s[k].host[i] = 0; s[k].token[i] = 0 }
  i = 0
}

inline copy_page(to, from) {
  for (i : 0 .. CLAIMS - 1) { to.state[i] = from.state[i]; to.token[i] = from.token[i]; to.tomb[i] = from.tomb[i] }
  to.attested = from.attested;
  i = 0
}

inline clear_page(page) {
  for (i : 0 .. CLAIMS - 1) { page.state[i] = NO; page.token[i] = 0; page.tomb[i] = 0 }
  page.attested = 0;
  i = 0
}

/* Nobody reads a journal after the last crash: what waits for it is only late, as every step may be. */
#define is_read (crashes < CRASHES)
inline write_journal(h) {
  if
  :: is_read -> copy_page(a[h].journal, a[h].page)
  :: else
  fi
}

#define answers(k) (s[k].epoch != 0 && s[k].fenced)
#define hears(k, h) (answers(k) && s[k].attested[h] == s[k].epoch)
#define here(k, h, x) (s[k].host[x] == h && s[k].state[x] >= CLAIMED && s[k].state[x] <= ENDING)
#define placed(k, h, x) (here(k, h, x) && s[k].token[x] == a[h].page.token[x])
#define durable(h, x) (!is_read || (a[h].page.state[x] == a[h].journal.state[x] && \
                                    a[h].page.token[x] == a[h].journal.token[x]))
#define is_free(h, x) (a[h].reply[x] == 0 && a[h].losing[x] == 0 && !a[h].drop[x])

#if HOSTS > 1
#define all_hear (hears(NEW, 0) && hears(NEW, 1))
#else
#define all_hear hears(NEW, 0)
#endif
#define tomb_dirty(h, x) (is_read && a[h].page.tomb[x] != a[h].journal.tomb[x])
#if CLAIMS > 1
#define is_dirty(h) (!durable(h, 0) || !durable(h, 1) || tomb_dirty(h, 0) || tomb_dirty(h, 1))
#else
#define is_dirty(h) (!durable(h, 0) || tomb_dirty(h, 0))
#endif

/* -------------------------------------------------------------------- rules that are one condition, to be taken out */

#ifdef NO_EPOCH_CHECK
#define in_its_epoch(x) true
#else
#define in_its_epoch(x) (s[c[x].server].epoch == c[x].epoch)
#endif
#ifdef NO_SETTLING
#define is_settled(k) true
#else
#define is_settled(k) (s[k].settled)
#endif
#ifdef NO_RESEND
#define RESENDS false
#else
#define RESENDS true
#endif
#ifndef CONFIRM_BEFORE_JOURNAL
#define CONFIRM_BEFORE_JOURNAL false
#endif
#ifndef BEGIN_BEFORE_JOURNAL
#define BEGIN_BEFORE_JOURNAL false
#endif
#ifndef ATTEST_BEFORE_JOURNAL
#define ATTEST_BEFORE_JOURNAL false
#endif
#ifndef ANY_EPOCH
#define ANY_EPOCH false
#endif
#ifndef EXPIRE_UNATTESTED
#define EXPIRE_UNATTESTED false
#endif
#ifndef LATE
#define LATE false
#endif
#ifndef SETTLE_EARLY
#define SETTLE_EARLY false
#endif

/* ---------------------------------------------------------------------------------------------------- the scripts */

/* claim.lua, past its checks of ids: on host h, if it fits there. `held` is what the host holds afterwards. */
inline look(k, h) {
  held = 1;
  for (i : 0 .. CLAIMS - 1) { held = held + (here(k, h, i) -> 1 : 0) }
  i = 0
}

inline place(k, h, x) {
  assert(held <= CAPACITY);
  /* What the store counts covers what runs; but an old primary cannot know what was claimed elsewhere since. */
  n = 1;
  for (i : 0 .. CLAIMS - 1) { n = n + ((i != x && a[h].runs[i]) -> 1 : 0) }
  assert(n <= CAPACITY || k == OLD);
  s[k].seq++;
  s[k].state[x] = CLAIMED; s[k].host[x] = h; s[k].token[x] = s[k].epoch * 16 + s[k].seq;
  i = 0; n = 0; held = 0
}

/* release.lua, and the script that undoes what is not active after a timeout: not wanted any more. */
inline give_back(k, x) {
  if
  :: s[k].state[x] == CLAIMED -> s[k].state[x] = ENDED
  :: s[k].state[x] == STARTING || s[k].state[x] == ACTIVE -> s[k].state[x] = ENDING
  :: else
  fi
}

/* void.lua: nobody brings back what its owner was told is unknown. */
#define is_unheard(k) (s[k].waiting > 0 || s[k].by_time)
inline close_id(k, x) {
#ifndef NO_VOID
  if
  :: is_unheard(k) -> s[k].state[x] = ENDED; s[k].token[x] = s[k].epoch * 16 + s[k].seq
  :: else
  fi
#else
  skip
#endif
}

/* attest_merge.lua, for one claim: the union of journal and store. */
inline merge(k, h, x) {
  if
#ifdef TOMBSTONE_BY_ID
  :: a[h].said.state[x] != NO && a[h].said.tomb[x] == 0 ->
#else
  :: a[h].said.token[x] > a[h].said.tomb[x] ->
#endif
    /* What it is attested as, by rank. */
    n = a[h].said.state[x];
    if
#ifdef RUNS_IS_STARTING
    :: n == RUNS -> n = STARTING
#else
    :: n == RUNS -> n = ACTIVE
#endif
    :: n == LIVE -> n = ACTIVE
    :: n == STOPPING -> n = ENDING
    :: else
    fi;
    if
    :: here(k, h, x) && a[h].said.token[x] > s[k].token[x] -> s[k].token[x] = a[h].said.token[x]; s[k].state[x] = n
    :: here(k, h, x) && a[h].said.token[x] <= s[k].token[x] -> s[k].state[x] = (n > s[k].state[x] -> n : s[k].state[x])
    :: !here(k, h, x) && s[k].attested[h] != s[k].epoch &&
       (s[k].state[x] == NONE || a[h].said.token[x] > s[k].token[x]) ->
      s[k].state[x] = n; s[k].host[x] = h; s[k].token[x] = a[h].said.token[x]
    :: else -> a[h].drop[x] = true
    fi
#ifndef NO_TOMBSTONES
  :: a[h].said.tomb[x] != 0 && a[h].said.tomb[x] >= a[h].said.token[x] && here(k, h, x) &&
     s[k].token[x] <= a[h].said.tomb[x] ->
    s[k].state[x] = ENDED
#endif
  :: else ->
    if
    :: here(k, h, x) && s[k].state[x] != ENDING -> s[k].state[x] = CLAIMED
    :: else
    fi
  fi;
  n = 0
}

/* ------------------------------------------------------------------------------------------------------ callers */

proctype Caller_(byte x) {
  byte h;
end:
  do
  /* Decide, on a picture of this epoch. The claims are alike: the first one asks first. */
  :: atomic { c[x].state == IDLE && answers(c[x].server) && has_asked >= x ->
       has_asked = (has_asked > x -> has_asked : x + 1);
       c[x].state = SENT; c[x].epoch = s[c[x].server].epoch }

  /* claim.lua; its answer comes, or is lost and the call is sent again. */
  :: atomic { c[x].state == SENT && answers(c[x].server) && s[c[x].server].state[x] != NONE ->      /* SAME, GONE */
       c[x].epoch = 0;
       c[x].state = (s[c[x].server].state[x] == ENDED -> UNWANTED : WAITING) }
  :: atomic { c[x].state == SENT && answers(c[x].server) && s[c[x].server].state[x] == NONE &&
              !in_its_epoch(x) ->                                                                           /* EPOCH */
       c[x].epoch = 0;
       /* Another id is made for the next try: whatever the lost copy did is not wanted. */
       c[x].state = (OWN -> IDLE : UNWANTED) }
  :: atomic { c[x].state == SENT && answers(c[x].server) && s[c[x].server].state[x] == NONE && in_its_epoch(x) &&
              (!OWN || is_settled(c[x].server)) ->
       if
       :: h = 0
#if HOSTS > 1
       :: h = 1
#endif
       fi;
       look(c[x].server, h);
       if
       :: hears(c[x].server, h) && held <= CAPACITY ->
         place(c[x].server, h, x);
         if
         :: c[x].state = WAITING; c[x].epoch = 0
         :: skip                                                                    /* the answer is lost */
         fi
       :: else
       fi;
       h = 0; held = 0 }
  :: atomic { c[x].state == SENT && answers(c[x].server) && s[c[x].server].state[x] == NONE ->
       c[x].state = UNWANTED; c[x].epoch = 0 }                                  /* refused, or it gives up asking */

#if OWN
  /* The same id once more, while the store does not know it: from a caller that lost patience, or twice. */
  :: atomic { (c[x].state == WAITING || c[x].state == ACKED) && answers(c[x].server) &&
              s[c[x].server].state[x] == NONE && is_settled(c[x].server) ->
       if
       :: h = 0
#if HOSTS > 1
       :: h = 1
#endif
       fi;
       look(c[x].server, h);
       if
       :: hears(c[x].server, h) && held <= CAPACITY -> place(c[x].server, h, x)
       :: else -> if :: c[x].state == WAITING -> c[x].state = UNWANTED :: else fi
       fi;
       h = 0; held = 0 }
#endif

  /* until=active */
  :: atomic { c[x].state == WAITING && s[c[x].server].state[x] == ACTIVE ->
       c[x].state = ACKED; c[x].host = s[c[x].server].host[x];
       if :: c[x].keeps = true :: skip fi }
#ifdef ACK_WHEN_STARTING
  :: atomic { c[x].state == WAITING && s[c[x].server].state[x] == STARTING ->
       c[x].state = ACKED; c[x].host = s[c[x].server].host[x]; c[x].keeps = true }
#endif
#ifdef ACK_WHEN_CLAIMED
  :: atomic { c[x].state == WAITING && s[c[x].server].state[x] == CLAIMED ->
       c[x].state = ACKED; c[x].host = s[c[x].server].host[x]; c[x].keeps = true }
#endif
  /* Its time is up: undone in one script, unless it is active. */
  :: atomic { c[x].state == WAITING && hears(c[x].server, s[c[x].server].host[x]) &&
              s[c[x].server].state[x] != ACTIVE && s[c[x].server].state[x] != NONE ->
       give_back(c[x].server, x); c[x].state = UNWANTED }
  :: atomic { c[x].state == WAITING && answers(c[x].server) && s[c[x].server].settled &&
              s[c[x].server].state[x] == NONE -> c[x].state = UNWANTED }          /* lost, and told so */

  :: atomic { c[x].state == ACKED && !c[x].keeps && hears(c[x].server, s[c[x].server].host[x]) &&
              s[c[x].server].state[x] != NONE -> give_back(c[x].server, x); c[x].state = UNWANTED }
  /* What was given back is said again in each epoch until that has settled. */
  :: atomic { c[x].state == UNWANTED && RESENDS && hears(c[x].server, s[c[x].server].host[x]) &&
              s[c[x].server].state[x] >= CLAIMED && s[c[x].server].state[x] <= ACTIVE -> give_back(c[x].server, x) }

  /* "There is none": void.lua, for a host that is still to attest may have it. That too is said again. */
  :: atomic { c[x].state == ACKED && !c[x].keeps && answers(c[x].server) && s[c[x].server].settled &&
              s[c[x].server].state[x] == NONE -> close_id(c[x].server, x); c[x].state = TOLD }
#ifndef SAID_ONCE
  :: atomic { c[x].state == TOLD && answers(c[x].server) && s[c[x].server].state[x] == NONE &&
              is_unheard(c[x].server) -> close_id(c[x].server, x) }
  :: atomic { c[x].state == TOLD && hears(c[x].server, s[c[x].server].host[x]) &&
              s[c[x].server].state[x] >= CLAIMED && s[c[x].server].state[x] <= ACTIVE -> give_back(c[x].server, x) }
#endif

#if LIVES > 1
  /* remember_s later: the id is forgotten, and may be used again. */
  :: atomic { c[x].state == UNWANTED && c[x].lives < LIVES - 1 && answers(NEW) && !has_old &&
              s[NEW].state[x] == ENDED && s[NEW].settled && !has_copy && !(a[0].runs[x]) ->
       s[NEW].state[x] = NONE; s[NEW].host[x] = 0; s[NEW].token[x] = 0;
       c[x].state = IDLE; c[x].lives++ }
#endif
#ifdef OLD_PRIMARY
  :: atomic { c[x].server == OLD -> c[x].server = NEW }
#endif
  od
}

/* ------------------------------------------------------------------------------------- an agent: agent/host_session.py */

proctype Agent(byte h) {
  byte x;
end:
  do
#if CRASHES
  :: atomic { is_read && (a[h].page.attested != a[h].journal.attested || is_dirty(h)) -> write_journal(h) }
#endif

  /* A heartbeat, or any answer: hears(). */
  :: atomic { answers(a[h].server) && a[h].open != 0 && s[a[h].server].epoch > a[h].open &&
              s[a[h].server].epoch != a[h].met -> a[h].met = s[a[h].server].epoch;
#ifndef NO_LEAVE
       a[h].open = 0
#endif
     }
  :: atomic { answers(a[h].server) && a[h].open == 0 && s[a[h].server].epoch > a[h].met ->
       a[h].met = s[a[h].server].epoch; a[h].saying = 0; clear_page(a[h].said) }
  :: atomic { answers(a[h].server) &&
              (s[a[h].server].epoch < a[h].open ||
               (a[h].open == 0 && (s[a[h].server].epoch <= a[h].left || s[a[h].server].epoch < a[h].page.attested ||
                                   s[a[h].server].epoch < a[h].met))) -> raise(a[h].server) }

  /* An earlier process with this very journal had attested. */
  :: atomic { a[h].open == 0 && a[h].saying == 0 && hears(a[h].server, h) &&
              a[h].page.attested == s[a[h].server].epoch ->
       a[h].met = s[a[h].server].epoch; a[h].open = a[h].met }

  /* _leave(), _all_claims(), attest.lua, _open() */
  :: atomic { a[h].open == 0 && a[h].page.attested != 0 && a[h].met > a[h].page.attested ->
       a[h].left = a[h].page.attested; a[h].page.attested = 0; write_journal(h) }
#ifdef NO_LEAVE
  :: atomic { a[h].saying == 0 && a[h].met > a[h].open && (!is_dirty(h) || ATTEST_BEFORE_JOURNAL) ->
#else
  :: atomic { a[h].open == 0 && a[h].saying == 0 && a[h].met > a[h].left && a[h].page.attested == 0 &&
              (!is_dirty(h) || ATTEST_BEFORE_JOURNAL) ->
#endif
       copy_page(a[h].said, a[h].page); a[h].said_epoch = a[h].met; a[h].saying = 1 }
  :: atomic { a[h].saying == 1 && answers(a[h].server) && s[a[h].server].epoch == a[h].said_epoch ->
#ifndef NO_ATTEST
       for (x : 0 .. CLAIMS - 1) { merge(a[h].server, h, x) }
#endif
       x = 0;
       if
       :: s[a[h].server].attested[h] != s[a[h].server].epoch ->
         if
         :: s[a[h].server].known[h] && !s[a[h].server].by_time && s[a[h].server].waiting > 0 ->
           s[a[h].server].waiting--;
           s[a[h].server].settled = s[a[h].server].settled || s[a[h].server].waiting == 0
         :: else
         fi;
         s[a[h].server].known[h] = true; s[a[h].server].attested[h] = s[a[h].server].epoch
       :: else
       fi;
       a[h].saying = 2; clear_page(a[h].said) }
  :: atomic { a[h].saying == 2 ->
       a[h].saying = 0; a[h].open = a[h].said_epoch; a[h].page.attested = a[h].said_epoch; a[h].said_epoch = 0;
       for (x : 0 .. CLAIMS - 1) {
         if
         :: a[h].drop[x] && a[h].page.state[x] != NO && a[h].page.state[x] != STOPPING ->
           a[h].losing[x] = LOSING; a[h].hook[x] = false; a[h].reply[x] = 0; a[h].reply_epoch[x] = 0
         :: else
         fi;
         a[h].drop[x] = false
       };
       x = 0 }

#if CRASHES
  :: atomic { crashes < CRASHES ->
       crashes++;
       copy_page(a[h].page, a[h].journal);
       if
       :: !is_read -> for (x : 0 .. HOSTS - 1) { clear_page(a[x].journal) }
       :: else
       fi;
       a[h].open = 0; a[h].met = 0; a[h].saying = 0; a[h].said_epoch = 0; clear_page(a[h].said);
       for (x : 0 .. CLAIMS - 1) {
         a[h].anew[x] = false; a[h].accepted[x] = false; a[h].hook[x] = false; a[h].reply[x] = 0;
         a[h].reply_epoch[x] = 0; a[h].losing[x] = 0; a[h].drop[x] = false
       };
       x = 0 }
#endif
#ifdef OLD_PRIMARY
  :: atomic { a[h].server == OLD -> a[h].server = NEW }
#endif
  od
}

/* --------------------------------------------------------------- one claim on its host: agent/claims/tasks.py, steps.py */

/* One connection carries all that a host says. NO_LEAVE: what comes over another one counts as well. */
#define at (other -> OLD : a[h].server)
#define says(k, h) (hears(k, h) && s[k].epoch == a[h].open)

inline stop_work(h, x) {
  assert(!(c[x].state == ACKED && c[x].host == h && a[h].runs[x]));    /* nothing that was told active is stopped */
  a[h].runs[x] = false
}

/* agent/claims/lifecycle.py, _fits(): what the host has against all that its page holds. */
#ifdef NO_DOUBLE_CHECK
#define fits(h, x) true
#elif CLAIMS > 1
#define fits(h, x) (CAPACITY > 1 || a[h].page.state[1 - x] == NO)
#else
#define fits(h, x) true
#endif

proctype Work(byte h; byte x; bool other) {
end:
  do
  /* Inbox or comparison: a claim to be accepted. */
  :: atomic { a[h].open != 0 && is_free(h, x) && a[h].page.state[x] == NO && says(at, h) && here(at, h, x) ->
       if
       :: s[at].state[x] == ENDING -> a[h].page.state[x] = STOPPING; a[h].page.token[x] = s[at].token[x]
       :: s[at].state[x] != ENDING && s[at].token[x] != a[h].page.tomb[x] ->
         a[h].page.state[x] = HELD; a[h].page.token[x] = s[at].token[x]; a[h].anew[x] = true
       /* It had ended here: the store has lost that (_tell_that_it_ended). */
       :: s[at].state[x] != ENDING && s[at].token[x] == a[h].page.tomb[x] -> raise(at)
       fi }

  /* accept.lua */
  :: atomic { a[h].open != 0 && is_free(h, x) && !a[h].accepted[x] &&
              (a[h].page.state[x] == HELD || a[h].page.state[x] == BEGUN || a[h].page.state[x] == RUNS) &&
              durable(h, x) && hears(at, h) ->
       if
       :: placed(at, h, x) && s[at].state[x] == ENDING -> a[h].reply[x] = IS_ENDING
       :: placed(at, h, x) && s[at].state[x] != ENDING ->
         s[at].state[x] = (s[at].state[x] == CLAIMED -> STARTING : s[at].state[x]); a[h].reply[x] = OK
       :: !placed(at, h, x) -> a[h].reply[x] = GONE
       fi;
       a[h].reply_epoch[x] = s[at].epoch }

#ifdef BEGIN_LATER
  /* What was accepted is begun after a while, whatever the host has said to a new epoch meanwhile. */
  :: atomic { a[h].accepted[x] && a[h].page.state[x] == HELD && is_free(h, x) -> a[h].page.state[x] = BEGUN }
#endif
  /* The hook: run only after OK, and once that it may have run is durable. */
  :: atomic { a[h].accepted[x] && !a[h].hook[x] && is_free(h, x) && a[h].page.state[x] == BEGUN &&
              (durable(h, x) || BEGIN_BEFORE_JOURNAL) ->
       a[h].hook[x] = true; a[h].runs[x] = true;
       for (i : 0 .. CLAIMS - 1) { n = n + (a[h].runs[i] -> 1 : 0) }
       i = 0;
       assert(n <= CAPACITY);                                         /* what runs never exceeds what the host has */
#if HOSTS > 1
       assert(!(a[0].runs[x] && a[1].runs[x]));                                           /* nor is it on two hosts */
#endif
       n = 0 }
  :: atomic { a[h].hook[x] && a[h].losing[x] == 0 -> a[h].hook[x] = false; a[h].page.state[x] = RUNS }

  /* confirm.lua */
  :: atomic { a[h].open != 0 && is_free(h, x) && a[h].accepted[x] && a[h].page.state[x] == RUNS &&
              (durable(h, x) || CONFIRM_BEFORE_JOURNAL) && hears(at, h) ->
       if
       :: placed(at, h, x) && s[at].state[x] == ENDING -> a[h].reply[x] = IS_ENDING
       :: placed(at, h, x) && s[at].state[x] != ENDING -> s[at].state[x] = ACTIVE; a[h].reply[x] = OK
       :: !placed(at, h, x) -> a[h].reply[x] = GONE
       fi;
       a[h].reply_epoch[x] = s[at].epoch }

  /* To be ended: taking it up is broken off. Durable, then stopped, then gone.lua. */
  :: atomic { a[h].losing[x] == 0 && a[h].page.state[x] != NO && a[h].page.state[x] != STOPPING &&
              says(a[h].server, h) && placed(a[h].server, h, x) && s[a[h].server].state[x] == ENDING ->
       a[h].page.state[x] = STOPPING; a[h].accepted[x] = false; a[h].hook[x] = false;
       a[h].reply[x] = 0; a[h].reply_epoch[x] = 0 }
  :: atomic { a[h].page.state[x] == STOPPING && durable(h, x) && a[h].runs[x] -> stop_work(h, x) }
  :: atomic { a[h].open != 0 && is_free(h, x) && a[h].page.state[x] == STOPPING && durable(h, x) && !a[h].runs[x] &&
              hears(a[h].server, h) ->
       if
       :: placed(a[h].server, h, x) -> s[a[h].server].state[x] = ENDED
       :: else
       fi;
       a[h].reply[x] = OK; a[h].reply_epoch[x] = s[a[h].server].epoch }

  /* _say(): an answer counts in the epoch that the host is open in; otherwise it is asked for again. */
  :: atomic { a[h].reply[x] != 0 && a[h].losing[x] == 0 && a[h].open != 0 ->
       if
       :: a[h].reply_epoch[x] != a[h].open && !ANY_EPOCH
       :: else ->
         if
         :: a[h].page.state[x] == STOPPING ->
           a[h].page.tomb[x] = a[h].page.token[x]; a[h].page.state[x] = NO; a[h].page.token[x] = 0
         /* Accepted. That the hook may have run is on the page in the same breath, in the epoch of the answer. */
         :: a[h].page.state[x] == RUNS && a[h].reply[x] == OK && !a[h].accepted[x] -> a[h].accepted[x] = true
         :: a[h].page.state[x] < RUNS && a[h].reply[x] == OK ->
#ifndef BEGIN_LATER
           a[h].page.state[x] = BEGUN;
#endif
           if
           :: fits(h, x) -> a[h].accepted[x] = true
           :: !fits(h, x) || refusals < REFUSALS ->
             refusals = (fits(h, x) -> refusals + 1 : refusals);
             a[h].losing[x] = (a[h].runs[x] -> CLEANING : UNBEGUN)
           fi
         :: a[h].page.state[x] == RUNS && a[h].reply[x] == OK && a[h].accepted[x] ->
           a[h].page.state[x] = LIVE; a[h].accepted[x] = false
         :: a[h].page.state[x] != STOPPING && a[h].reply[x] == IS_ENDING ->
           a[h].page.state[x] = STOPPING; a[h].accepted[x] = false
         :: a[h].page.state[x] == HELD && a[h].reply[x] == GONE && a[h].anew[x] ->
           a[h].page.state[x] = NO; a[h].page.token[x] = 0                                   /* write_forgotten */
         :: else -> a[h].losing[x] = LOSING; a[h].accepted[x] = false
         fi;
         a[h].anew[x] = false
       fi;
       a[h].reply[x] = 0; a[h].reply_epoch[x] = 0 }

  /* Only the journal holds it: ask_about(). */
  :: atomic { is_free(h, x) && a[h].page.state[x] != NO && a[h].page.state[x] != STOPPING && !a[h].anew[x] &&
              says(a[h].server, h) && !placed(a[h].server, h, x) ->
       a[h].losing[x] = LOSING; a[h].accepted[x] = false; a[h].hook[x] = false }
  /* lose(): stop it, then put a tombstone in its place. _fail(): the same, and fail.lua before the tombstone. */
  :: atomic { a[h].losing[x] == LOSING -> stop_work(h, x); a[h].losing[x] = LOST }
  :: atomic { a[h].losing[x] == CLEANING -> stop_work(h, x); a[h].losing[x] = UNBEGUN }
  :: atomic { a[h].losing[x] == UNBEGUN && says(a[h].server, h) ->
       if
       :: placed(a[h].server, h, x) -> s[a[h].server].state[x] = ENDED
       :: else
       fi;
       a[h].losing[x] = LOST }
  :: atomic { a[h].losing[x] == LOST ->
       a[h].page.tomb[x] = a[h].page.token[x]; a[h].page.state[x] = NO; a[h].page.token[x] = 0; a[h].losing[x] = 0 }
  od
}

/* ------------------------------------------------------------------------------------- the store and its faults */

proctype Leases(byte x) {
end:
  do
  /* reconcile.lua: a lease may run out at any time. */
  :: atomic { answers(NEW) && s[NEW].state[x] == CLAIMED &&
              (hears(NEW, s[NEW].host[x]) || EXPIRE_UNATTESTED) -> s[NEW].state[x] = ENDED }
  :: atomic { answers(NEW) && s[NEW].state[x] == STARTING && hears(NEW, s[NEW].host[x]) ->
#ifdef EXPIRE_FREES
       s[NEW].state[x] = ENDED
#else
       s[NEW].state[x] = ENDING
#endif
     }
#ifdef OLD_PRIMARY
  :: atomic { has_old && answers(OLD) && s[OLD].state[x] == CLAIMED && hears(OLD, s[OLD].host[x]) ->
       s[OLD].state[x] = ENDED }
  :: atomic { has_old && answers(OLD) && s[OLD].state[x] == STARTING && hears(OLD, s[OLD].host[x]) ->
       s[OLD].state[x] = ENDING }
#endif
  od
}

#define acked_at(x) (c[x].state == ACKED && hears(NEW, c[x].host))
#define is_kept(x) (here(NEW, c[x].host, x) && s[NEW].state[x] != ENDING && a[c[x].host].runs[x])

proctype World() {
  byte x;
end:
  do
#if FAILOVERS
  /* What a replica has at some moment; later it is promoted, and what was written since is lost. */
  :: atomic { failovers < FAILOVERS && !has_copy -> copy_store(COPY, NEW); has_copy = true }
  :: atomic { failovers < FAILOVERS && has_copy && !has_old ->
       failovers++; has_copy = false;
#ifdef OLD_PRIMARY
       has_old = true; copy_store(OLD, NEW);
       for (i : 0 .. HOSTS - 1) { a[i].server = OLD }
       for (i : 0 .. CLAIMS - 1) { c[i].server = OLD }
       i = 0;
#endif
       copy_store(NEW, COPY); wipe_store(COPY);
#ifndef NO_FENCE
       s[NEW].fenced = false
#endif
     }
#endif
#if WIPES
  :: atomic { wipes < WIPES -> wipes++; wipe_store(NEW);
#ifndef OLD_COPY
       wipe_store(COPY); has_copy = false                             /* its replicas are wiped with it */
#endif
     }
#endif
  /* fence.lua: the next script, whichever it is. */
  :: atomic { s[NEW].epoch != 0 && !s[NEW].fenced -> mint(NEW, false) }
  :: atomic { s[NEW].epoch == 0 -> mint(NEW, true) }
  /* By time. Assumed: hosts that live have attested by then. */
  :: atomic { answers(NEW) && !s[NEW].settled && (all_hear || LATE || SETTLE_EARLY) -> s[NEW].settled = true }

  /* What was told active is in the store as soon as its host has attested, and runs there. */
  :: atomic { acked_at(0) && !is_kept(0) -> assert(false) }
#if CLAIMS > 1
  :: atomic { acked_at(1) && !is_kept(1) -> assert(false) }
#endif

  /* Nothing more can happen: leases have run out, all is said. */
  :: atomic { timeout ->
       for (x : 0 .. CLAIMS - 1) {
         assert(c[x].state != SENT && c[x].state != WAITING);
         assert(c[x].state == ACKED || s[NEW].state[x] == NONE || s[NEW].state[x] == ENDED);
         assert(c[x].state != ACKED || (s[NEW].state[x] == ACTIVE && a[c[x].host].runs[x]));
         for (n : 0 .. HOSTS - 1) {
           assert(!a[n].runs[x] || (s[NEW].state[x] == ACTIVE && s[NEW].host[x] == n))
         }
       };
       x = 0; n = 0; break }
  od
}

init {
  atomic {
    s[NEW].epoch = 1; s[NEW].fenced = true; s[NEW].settled = true;
    for (i : 0 .. HOSTS - 1) {
#ifdef JOIN
      if
      :: i == 0 -> a[i].met = 1
      :: else ->
#endif
      s[NEW].known[i] = true; s[NEW].attested[i] = 1;
      a[i].open = 1; a[i].met = 1; a[i].page.attested = 1; a[i].journal.attested = (is_read -> 1 : 0)
#ifdef JOIN
      fi
#endif
    };
    i = 0;
    run World();
    for (i : 0 .. CLAIMS - 1) { run Caller_(i); run Leases(i) };
    for (held : 0 .. HOSTS - 1) {
      run Agent(held);
      for (i : 0 .. CLAIMS - 1) {
        run Work(held, i, false)
#ifdef NO_LEAVE
        ; run Work(held, i, true)
#endif
      }
    };
    i = 0; held = 0
  }
}
