/*
 * A limit that cells share: each admits claims by its own share, share moves on demand, cells lose their last writes.
 *
 * README.md in this folder says which step stands for which script, what is left out, and what was found. Sizes come
 * with -D: CELLS, LIMIT, CLAIMS (each is placed once), ROLLBACKS (failovers to an older copy), WIPES, GIVES (transfers
 * that are begun), COORDINATORS (schedulers that begin terms), MOVERS (two schedulers that move share). Every claim has
 * the amount 1. A rule is taken out with -D and its name.
 *
 * Each cell has one host, whose journal is durable. Schedulers may stop for ever after any step, or go on much later.
 */
#ifndef CELLS
#define CELLS 2
#endif
#ifndef LIMIT
#define LIMIT 2
#endif
#ifndef CLAIMS
#define CLAIMS 3
#endif
#ifndef ROLLBACKS
#define ROLLBACKS 1
#endif
#ifndef WIPES
#define WIPES 0
#endif
#ifndef GIVES
#define GIVES 1
#endif
#ifndef COORDINATORS
#define COORDINATORS 1
#endif

/* On the page of a claim's host. */
#define NO   0
#define HELD 1
#define TOMB 2

typedef Term { byte at[CELLS] }
typedef Data {             /* what a cell's failover rolls back */
  byte share;
  Term term;               /* the epochs of all cells that the share is valid in */
  byte closed_share;       /* with which it entered that term */
  bool granted;            /* it has got what no cell had when the term began */
  byte sent[CELLS];        /* in this term, to and from each other cell: running totals */
  byte got[CELLS];
  bool claim[CLAIMS]
}
Data d[CELLS];
Data copy[CELLS];
bool has_copy[CELLS];
byte epoch[CELLS];
bool settled[CELLS];       /* its host has attested to this epoch */

byte cell[CLAIMS];         /* where it was placed */
byte page[CLAIMS];
byte placed, rollbacks, wipes, gives;
hidden byte i, j, k, n;

inline copy_data(to, src) {
  to.share = src.share; to.closed_share = src.closed_share; to.granted = src.granted;
  for (i : 0 .. CELLS - 1) { to.term.at[i] = src.term.at[i]; to.sent[i] = src.sent[i]; to.got[i] = src.got[i] };
  for (i : 0 .. CLAIMS - 1) { to.claim[i] = src.claim[i] };
  i = 0
}

inline clear_data(it) {
  it.share = 0; it.closed_share = 0; it.granted = false;
  for (i : 0 .. CELLS - 1) { it.term.at[i] = 0; it.sent[i] = 0; it.got[i] = 0 };
  for (i : 0 .. CLAIMS - 1) { it.claim[i] = false };
  i = 0
}

#if CLAIMS == 2
#define use_(k) (k.claim[0] + k.claim[1])
#elif CLAIMS == 3
#define use_(k) (k.claim[0] + k.claim[1] + k.claim[2])
#else
#define use_(k) (k.claim[0] + k.claim[1] + k.claim[2] + k.claim[3])
#endif
#define use(c) use_(d[c])

/* A new epoch makes the share void by itself: nobody has to notice first. */
#ifdef ANY_EPOCH
#define is_valid(c) true
#else
#define is_valid(c) (d[c].term.at[c] == epoch[c])
#endif
#define same_term(a, b) (a.at[0] == b.at[0] && a.at[1] == b.at[1] && third_same(a, b))
#define not_older(a, b) (a.at[0] >= b.at[0] && a.at[1] >= b.at[1] && third_not_older(a, b))
#if CELLS > 2
#define third_same(a, b) (a.at[2] == b.at[2])
#define third_not_older(a, b) (a.at[2] >= b.at[2])
#define is_now(a) (a.at[0] == epoch[0] && a.at[1] == epoch[1] && a.at[2] == epoch[2])
#define all_now (is_now(d[0].term) && is_now(d[1].term) && is_now(d[2].term))
#define all_settled (settled[0] && settled[1] && settled[2])
#else
#define third_same(a, b) true
#define third_not_older(a, b) true
#define is_now(a) (a.at[0] == epoch[0] && a.at[1] == epoch[1])
#define all_now (is_now(d[0].term) && is_now(d[1].term))
#define all_settled (settled[0] && settled[1])
#endif

#define lives(k) (page[k] == HELD || (d[cell[k]].claim[k] && page[k] == NO))

/* The limit holds for what lives: what a store has, or a journal will bring back. */
inline check_limit() {
  n = 0;
  for (i : 0 .. CLAIMS - 1) { n = n + (i < placed && lives(i) -> 1 : 0) };
  assert(n <= LIMIT);
  n = 0; i = 0
}

/* And shares that may be used, with what is on its way in a term that both sides are in. */
inline check_shares() {
  n = 0;
  for (i : 0 .. CELLS - 1) {
    n = n + (is_valid(i) -> d[i].share : 0);
    for (k : 0 .. CLAIMS - 1) { n = n + (k < placed && cell[k] == i && !is_valid(i) && lives(k) -> 1 : 0) };
    k = 0;
    for (j : 0 .. CELLS - 1) {
      n = n + (i != j && is_valid(i) && is_valid(j) && same_term(d[i].term, d[j].term) && d[i].sent[j] > d[j].got[i] ->
               d[i].sent[j] - d[j].got[i] : 0)
    };
    j = 0
  };
  assert(n <= LIMIT);
  n = 0; i = 0
}

/* --------------------------------------------------------------------------------------------- a term is begun */

#ifdef CLOSE_UNSETTLED
#define may_close(c) true
#else
#define may_close(c) (settled[c])
#endif
#ifdef ANY_ORDER
#define is_later_term(c) true
#else
#define is_later_term(c) (not_older(v, d[c].term))
#endif

/* close: the cell enters the term, and says with which share. A share of another epoch is worth what is in use. */
inline close(c) {
  if
  :: same_term(v, d[c].term) -> skip
  :: else ->
#ifndef NO_SHRINK
    if
    :: d[c].term.at[c] != epoch[c] -> d[c].share = use(c)
    :: else
    fi;
#endif
    for (i : 0 .. CELLS - 1) { d[c].term.at[i] = v.at[i]; d[c].sent[i] = 0; d[c].got[i] = 0 };
    i = 0;
    d[c].closed_share = d[c].share; d[c].granted = false
  fi;
#ifdef SHARE_OF_NOW
  sum = sum + d[c].share
#else
  sum = sum + d[c].closed_share
#endif
}

#ifdef GRANT_ANY_TERM
#define may_grant (is_valid(0) && !d[0].granted)
#else
#ifdef GRANT_TWICE
#define may_grant (same_term(v, d[0].term))
#else
#define may_grant (same_term(v, d[0].term) && !d[0].granted)
#endif
#endif

proctype Coordinator() {
  Term v;
  byte c, sum, step;
end:
  do
  /* Reads the epoch of one cell after the other. */
  :: atomic { step == 0 && c < CELLS && (c > 0 || !all_now || !d[0].granted) -> v.at[c] = epoch[c]; c++ }
  :: atomic { step == 0 && c == CELLS -> step = 1; c = 0 }
  :: atomic { step == 1 && c < CELLS && (v.at[c] != epoch[c] || (may_close(c) && !is_later_term(c))) ->
       step = 3 }
#ifdef READ_ONLY
  :: atomic { step == 1 && c < CELLS && v.at[c] == epoch[c] && may_close(c) && is_later_term(c) &&
              (d[c].term.at[c] == epoch[c] && c > 0) -> sum = sum + d[c].share; c++ }
  :: atomic { step == 1 && c < CELLS && v.at[c] == epoch[c] && may_close(c) && is_later_term(c) &&
              !(d[c].term.at[c] == epoch[c] && c > 0) -> close(c); c++; check_shares() }
#else
  :: atomic { step == 1 && c < CELLS && v.at[c] == epoch[c] && may_close(c) && is_later_term(c) ->
       close(c); c++; check_shares() }
#endif
  :: atomic { step == 1 && c == CELLS -> step = 2 }
  /* grant: what no cell has, to one of them, once. */
  :: atomic { step == 2 ->
       if
       :: may_grant -> assert(sum <= LIMIT); d[0].share = d[0].share + LIMIT - sum; d[0].granted = true; check_shares()
       :: else
       fi;
       step = 3 }
  /* Or it has stopped, and another begins anew. */
  :: atomic { step == 3 -> step = 0; c = 0; sum = 0; v.at[0] = 0; v.at[1] = 0;
#if CELLS > 2
       v.at[2] = 0
#endif
       }
  od
}

/* -------------------------------------------------------------------------------------------------- transfers */

#ifdef TAKE_ANY_TERM
#define may_take(b) (is_valid(b))
#else
#define may_take(b) (is_valid(b) && same_term(v, d[b].term))
#endif

inline take(b, a, total) {
#ifdef TAKE_ADDS
  d[b].share = d[b].share + 1; d[b].got[a] = d[b].got[a] + 1
#else
  d[b].share = d[b].share + (total > d[b].got[a] -> total - d[b].got[a] : 0);
  d[b].got[a] = (total > d[b].got[a] -> total : d[b].got[a])
#endif
}

#if CELLS > 2
#define pick_cells if :: a = 0; b = 1 :: a = 1; b = 0 :: a = 0; b = 2 :: a = 2; b = 1 fi
#else
#define pick_cells if :: a = 0; b = 1 :: a = 1; b = 0 fi
#endif
#define needs_push(a, b) (is_valid(a) && is_valid(b) && same_term(d[a].term, d[b].term) && d[a].sent[b] > d[b].got[a])

#ifdef TAKE_ADDS
#define ADDS true
#else
#define ADDS false
#endif

inline read_total() {
  total = d[a].sent[b]; has_read = true;
  for (i : 0 .. CELLS - 1) { v.at[i] = d[a].term.at[i] };
  i = 0
}

/* A copy of the last call of each may come again, much later. */
proctype Mover() {
  Term v;
  byte a, b, total;
  bool has_read;
end:
  do
  /* give */
  :: atomic { gives < GIVES && !has_read -> gives++; pick_cells;
       if
       :: is_valid(a) && use(a) < d[a].share ->
#ifdef TAKE_FIRST
         total = d[a].sent[b] + 1;
#else
         d[a].share--; d[a].sent[b]++; total = d[a].sent[b];
#endif
         for (i : 0 .. CELLS - 1) { v.at[i] = d[a].term.at[i] };
         i = 0; has_read = true; check_shares()
       :: else -> a = 0; b = 0
       fi }
#ifndef NO_FINISH
  /* Whoever finds a transfer that did not arrive sends it on. */
  :: atomic { !has_read && needs_push(0, 1) -> a = 0; b = 1; read_total() }
  :: atomic { !has_read && needs_push(1, 0) -> a = 1; b = 0; read_total() }
#if CELLS > 2
  :: atomic { !has_read && needs_push(0, 2) -> a = 0; b = 2; read_total() }
  :: atomic { !has_read && needs_push(2, 1) -> a = 2; b = 1; read_total() }
#endif
#endif
  :: atomic { has_read && may_take(b) && (total > d[b].got[a] || ADDS) -> take(b, a, total);
#ifdef TAKE_FIRST
       d[a].share = (d[a].share > use(a) -> d[a].share - 1 : d[a].share); d[a].sent[b] = total;
#endif
       check_shares() }
  /* It has stopped, or has done its work. */
  :: atomic { has_read -> has_read = false; a = 0; b = 0; total = 0; v.at[0] = 0; v.at[1] = 0;
#if CELLS > 2
       v.at[2] = 0
#endif
       }
  od
}
/* ------------------------------------------------------------------------------------------- claims and faults */

#ifdef ROOM_OF_LIMIT
#define has_room(c) (is_valid(c) && use(c) < LIMIT)
#else
#define has_room(c) (is_valid(c) && use(c) < d[c].share)
#endif

inline place(c) { cell[placed] = c; d[c].claim[placed] = true; placed++; check_limit() }

proctype Claims(byte x) {
end:
  do
  /* accept: its host journals it. */
  :: atomic { x < placed && settled[cell[x]] && d[cell[x]].claim[x] && page[x] == NO -> page[x] = HELD }
  /* It is released; its host stops it first. */
  :: atomic { x < placed && settled[cell[x]] && d[cell[x]].claim[x] && page[x] == HELD ->
       page[x] = TOMB; d[cell[x]].claim[x] = false }
  od
}

inline new_epoch(c) { epoch[c]++; settled[c] = false; has_copy[c] = false; clear_data(copy[c]); check_limit() }

proctype Cell(byte c) {
end:
  do
  :: atomic { placed < CLAIMS && has_room(c) -> place(c) }
  :: atomic { rollbacks < ROLLBACKS && !has_copy[c] -> copy_data(copy[c], d[c]); has_copy[c] = true }
  :: atomic { rollbacks < ROLLBACKS && has_copy[c] -> rollbacks++; copy_data(d[c], copy[c]); new_epoch(c) }
#if WIPES
  :: atomic { wipes < WIPES -> wipes++; clear_data(d[c]); new_epoch(c) }
#endif
  /* Its host attests. */
  :: atomic { !settled[c] ->
       for (n : 0 .. CLAIMS - 1) {
         d[c].claim[n] = (n < placed && cell[n] == c && page[n] != NO -> page[n] == HELD : d[c].claim[n])
       };
       n = 0; settled[c] = true }
  od
}

proctype World() {
end:
  do
  /* Nothing more can happen: nothing is lost for ever. */
  :: atomic { timeout ->
       n = 0;
       for (i : 0 .. CELLS - 1) { assert(is_valid(i)); n = n + d[i].share };
       assert(n == LIMIT);
       i = 0; n = 0; break }
  od
}

init {
  atomic {
    for (i : 0 .. CELLS - 1) {
      epoch[i] = 1; settled[i] = true;
      for (j : 0 .. CELLS - 1) { d[i].term.at[j] = 1 }
    };
    d[0].share = LIMIT; d[0].granted = true;
    i = 0; j = 0;
    run World();
    for (n : 1 .. COORDINATORS) { run Coordinator() };
    run Mover();
#ifdef MOVERS
    run Mover();
#endif
    for (n : 0 .. CELLS - 1) { run Cell(n) };
    for (n : 0 .. CLAIMS - 1) { run Claims(n) };
    n = 0
  }
}
