/*
 * A limit that cells share in divisions: each admits claims by its own share, share moves on demand, cells lose their
 * last writes.
 *
 * README.md in this folder says which step stands for which script, what is left out, and what was found. Sizes come
 * with -D: CELLS, LIMIT, CLAIMS (each is placed once), ROLLBACKS (failovers to an older copy), WIPES, DIVISIONS (that
 * are begun), DIVIDERS and MOVERS (schedulers that divide, and that hand share over), GIVES (transfers that are begun),
 * COPIES (calls of which a copy comes again later, any number of times), FACTS (claims that a host makes for itself),
 * LATE (a cell may settle by time, without its host), REDECLARES (the quota is taken back and declared again so often,
 * cell by cell; it begins undivided). Every claim and every transfer has the amount 1. A rule is taken out with -D and
 * its name.
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
#define CLAIMS 2
#endif
#ifndef ROLLBACKS
#define ROLLBACKS 1
#endif
#ifndef WIPES
#define WIPES 0
#endif
#ifndef DIVISIONS
#define DIVISIONS 2
#endif
#ifndef DIVIDERS
#define DIVIDERS 2
#endif
#ifndef GIVES
#define GIVES 1
#endif
#ifndef MOVERS
#define MOVERS 1
#endif
#ifndef COPIES
#define COPIES 0
#endif
#ifndef FACTS
#define FACTS 0
#endif
#ifndef REDECLARES
#define REDECLARES 0
#endif

/* On the page of a claim's host. */
#define NO   0
#define HELD 1
#define TOMB 2

/* Calls that come again. */
#define CLOSE 1
#define SHARE 2
#define GIVE  3
#define TAKE  4
#define VOID  5
#define GIVEN 6
#define BACK  7

/* What scripts answer. */
#define STALE 0
#define OK    1
#define SAME  2
#define GONE  3

typedef Data {             /* what a cell's failover rolls back */
  byte division;
  byte share_epoch;        /* 0 while the cell is closed */
  byte share;
  byte given[CELLS];       /* the number of the transfer that is on its way to each other cell */
  byte handed[CELLS];      /* the last number, to each; and from each the last that was taken, and heard of */
  byte taken[CELLS];
  byte heard[CELLS];
#if REDECLARES
  bool is_free;            /* there is no quota */
#endif
  bool claim[CLAIMS]
}


Data d[CELLS];
Data copy[CELLS];
bool is_at_work[DIVIDERS];
bool has_copy[CELLS];
byte epoch[CELLS];
bool settled[CELLS];
bool attested[CELLS];

byte cell[CLAIMS];         /* where it was placed */
byte page[CLAIMS];
bool counts[CLAIMS];       /* it was admitted, and has not ended; a cell that settled by time knew of it */
byte late_kind, late_c, late_other, late_division, late_number, late_at;
byte placed, taken_copies, wipes, divisions, gives, copies, facts;
#if REDECLARES
byte redeclares;
#endif
byte part;                 /* a share, while it is worked out */
hidden byte i, j, k, n, m, out, sum;
hidden Data kept[CELLS];

inline clear_division(it) {
  it.share_epoch = 0; it.share = 0;
  for (i : 0 .. CELLS - 1) { it.given[i] = 0; it.handed[i] = 0; it.taken[i] = 0; it.heard[i] = 0 };
  i = 0
}

#if REDECLARES
#define set_free(it, value) it.is_free = value
#define is_free(c) (d[c].is_free)
#define any_free (d[0].is_free || d[1].is_free)
#else
#define set_free(it, value) skip
#define is_free(c) false
#define any_free false
#endif

inline clear_data(it) {
  clear_division(it); it.division = 0; set_free(it, true);
  for (i : 0 .. CLAIMS - 1) { it.claim[i] = false };
  i = 0
}

inline copy_data(to, src) {
  to.division = src.division; to.share_epoch = src.share_epoch; to.share = src.share;
#if REDECLARES
  to.is_free = src.is_free;
#endif
  for (i : 0 .. CELLS - 1) {
    to.given[i] = src.given[i]; to.handed[i] = src.handed[i]; to.taken[i] = src.taken[i]; to.heard[i] = src.heard[i]
  };
  for (i : 0 .. CLAIMS - 1) { to.claim[i] = src.claim[i] };
  i = 0
}

#if CLAIMS == 1
#define use(c) (d[c].claim[0])
#elif CLAIMS == 2
#define use(c) (d[c].claim[0] + d[c].claim[1])
#elif CLAIMS == 3
#define use(c) (d[c].claim[0] + d[c].claim[1] + d[c].claim[2])
#else
#define use(c) (d[c].claim[0] + d[c].claim[1] + d[c].claim[2] + d[c].claim[3])
#endif

#define is_of_epoch(c) (d[c].share_epoch == epoch[c])
#ifdef CLAIM_ANY_EPOCH
#define may_claim(c) (d[c].share_epoch != 0)
#else
#define may_claim(c) is_of_epoch(c)
#endif
#ifdef MOVE_ANY_EPOCH
#define has_share(c, v) (d[c].division == v && d[c].share_epoch != 0)
#else
#ifdef MOVE_ANY_DIVISION
#define has_share(c, v) is_of_epoch(c)
#else
#define has_share(c, v) (d[c].division == v && is_of_epoch(c))
#endif
#endif

#if CELLS > 2
#define all_settled (settled[0] && settled[1] && settled[2])
#define all_shared (is_of_epoch(0) && is_of_epoch(1) && is_of_epoch(2) && d[0].division == d[1].division && \
                    d[0].division == d[2].division)
#define pick_cells if :: a = 0; b = 1 :: a = 1; b = 0 :: a = 0; b = 2 :: a = 2; b = 1 fi
#else
#define all_settled (settled[0] && settled[1])
#define all_shared (is_of_epoch(0) && is_of_epoch(1) && d[0].division == d[1].division)
#define pick_cells if :: a = 0; b = 1 :: a = 1; b = 0 fi
#endif

#define lives(k) (page[k] == HELD || (page[k] == NO && d[cell[k]].claim[k]))

/*
 * What is admitted, and what may still be by the shares that count, is within the limit. Where claims were made while
 * there was no quota, the limit may be exceeded; then nothing more is admitted.
 */
inline check_limit() {
  n = 0; sum = 0;
  for (i : 0 .. CELLS - 1) {
    m = 0;
    for (k : 0 .. CLAIMS - 1) { m = m + (counts[k] && cell[k] == i && lives(k) -> 1 : 0) };
    k = 0;
    n = n + (may_claim(i) && d[i].share > m -> d[i].share : m); sum = sum + m
  };
  assert(n <= LIMIT || (REDECLARES && (n == sum || any_free)));
  n = 0; m = 0; i = 0; sum = 0
}

#if FACTS || defined(LATE) || ROLLBACKS || WIPES || REDECLARES
#define is_over true       /* more was used than the limit */
#else
#define is_over false
#endif

/* Where all cells have a share, nothing of the limit is lost: it is a share, or on its way. */
inline check_whole() {
  if
  :: all_shared ->
     n = 0;
     for (i : 0 .. CELLS - 1) {
       n = n + d[i].share;
       for (j : 0 .. CELLS - 1) { n = n + (d[i].given[j] != 0 && d[j].taken[i] != d[i].given[j] -> 1 : 0) };
       j = 0
     };
     assert(n == LIMIT || (n == 0 && is_over));
     n = 0; i = 0
  :: else
  fi
}

inline check() { check_limit(); check_whole() }

/* --------------------------------------------------------------------------------------------------- the scripts */

#ifdef CLOSE_UNSETTLED
#define may_close(x) true
#else
#define may_close(x) (settled[x])
#endif
#ifdef CLOSE_AFTER_ANY
#define is_former(x, it) true
#else
#define is_former(x, it) (d[x].division == it)
#endif
#ifdef LEAVE_CLOSED
#define may_overtake(x) (d[x].share_epoch != 0)
#else
#define may_overtake(x) true
#endif

inline quota_close(x, former, v) {
  if
  :: !may_close(x) || is_free(x) -> out = STALE
  :: else ->
     if
     :: d[x].division == v -> out = (d[x].share_epoch != 0 -> STALE : SAME)
     :: d[x].division != v && is_former(x, former) && may_overtake(x) ->
        clear_division(d[x]); d[x].division = v; out = OK
     :: else -> out = STALE
     fi
  fi
}

#ifdef SHARE_ANY_DIVISION
#define is_closed_for(x, v) true
#else
#define is_closed_for(x, v) (d[x].division == v)
#endif
#ifdef SHARE_ANY_EPOCH
#define was_closed_in(x, e) true
#else
#define was_closed_in(x, e) (epoch[x] == e)
#endif
#ifdef SHARE_TWICE
#define is_closed(x) true
#else
#define is_closed(x) (d[x].share_epoch == 0)
#endif

inline quota_share(x, v, when, amount) {
  if
  :: is_closed_for(x, v) && was_closed_in(x, when) && is_closed(x) ->
     d[x].share_epoch = epoch[x]; d[x].share = amount; out = OK
  :: else -> out = STALE
  fi
}

#ifdef GIVE_OVER
#define is_nothing_held(x, y) true
#else
#define is_nothing_held(x, y) (d[x].given[y] == 0)
#endif
#ifdef GIVE_USED
#define has_spare(x) (d[x].share > 0)
#else
#define has_spare(x) (use(x) < d[x].share)
#endif

inline quota_give(x, y, v) {
  if
  :: has_share(x, v) && is_nothing_held(x, y) && has_spare(x) ->
#ifndef GIVE_LATER
     d[x].share--;
#endif
     d[x].handed[y]++; d[x].given[y] = d[x].handed[y]; out = OK
  :: else -> out = STALE
  fi
}

inline quota_take(x, y, v, which, void) {
  if
  :: !has_share(x, v) -> out = STALE
#ifndef TAKE_TWICE
  :: has_share(x, v) && d[x].taken[y] == which -> out = SAME
#ifndef TAKE_VOIDED
  :: has_share(x, v) && d[x].taken[y] != which && d[x].heard[y] >= which -> out = (void -> OK : GONE)
#endif
#endif
  :: else ->
     d[x].heard[y] = which; out = OK;
     if
     :: void -> skip
     :: else -> d[x].taken[y] = which; d[x].share++
     fi
  fi
}

#ifdef GIVEN_ANY_NUMBER
#define is_held(x, y, which) (d[x].given[y] != 0)
#else
#define is_held(x, y, which) (d[x].given[y] == which)
#endif

inline quota_given(x, y, v, which, back) {
  if
  :: has_share(x, v) && is_held(x, y, which) && which != 0 ->
#ifdef GIVE_LATER
     d[x].share = d[x].share - (back -> 0 : 1);
#else
     d[x].share = d[x].share + (back -> 1 : 0);
#endif
     d[x].given[y] = 0; out = OK
  :: else -> out = STALE
  fi
}

/* A call that is about to be made may come again. First in its step, for what is hidden is lost by a choice. */
inline may_come_again(kind_, x, y, v, number_, when) {
#if COPIES
  if
  :: copies < COPIES ->
     copies++; late_kind = kind_; late_c = x; late_other = y; late_division = v; late_number = number_; late_at = when
  :: true
  fi
#else
  skip
#endif
}

proctype Late() {
end:
  do
  :: atomic { late_kind == CLOSE -> quota_close(late_c, late_number, late_division); check() }
  :: atomic { late_kind == SHARE -> quota_share(late_c, late_division, late_at, late_number); check() }
  :: atomic { late_kind == GIVE && gives < GIVES -> gives++; quota_give(late_c, late_other, late_division); check() }
  :: atomic { late_kind == TAKE -> quota_take(late_c, late_other, late_division, late_number, false); check() }
  :: atomic { late_kind == VOID -> quota_take(late_c, late_other, late_division, late_number, true); check() }
  :: atomic { late_kind == GIVEN -> quota_given(late_c, late_other, late_division, late_number, false); check() }
  :: atomic { late_kind == BACK -> quota_given(late_c, late_other, late_division, late_number, true); check() }
  od
}

/* ------------------------------------------------------------------------------------------------------ dividing */

/* What each cell uses, and an equal part of the rest; none at all where more is used than the limit. */
inline work_out_share(x) {
  sum = 0;
  for (j : 0 .. CELLS - 1) { sum = sum + used[j] };
  j = 0;
  n = (sum <= LIMIT -> LIMIT - sum : 0);
  part = used[x] + n / CELLS + (x == 0 -> n % CELLS : 0);
#ifndef SHARES_OVER
  part = (sum <= LIMIT -> part : 0);
#endif
  sum = 0; n = 0
}

#define READS  0
#define TICKS  1
#define CLOSES 2
#define SHARES 3
#ifdef TICK_LATER
#define READ_DONE TICKS
#else
#define READ_DONE CLOSES
#endif

inline stop_dividing() {
  for (i : 0 .. CELLS - 1) { former[i] = 0; at[i] = 0; used[i] = 0 };
  i = 0; c = 0; step = READS; v = 0; is_at_work[x] = false
}

/* Dividers are alike: a later one begins only while the one before it is at work. */
proctype Divider(byte x) {
  byte former[CELLS];
  byte at[CELLS];          /* the epochs */
  byte used[CELLS];
  byte c, step, v;
end:
  do
  :: atomic { step == READS && (v != 0 || (divisions < DIVISIONS && (x == 0 || is_at_work[x - 1]))) ->
       if
       :: v == 0 -> divisions++; v = divisions + 1; is_at_work[x] = true
       :: else
       fi;
       former[c] = d[c].division;
#ifdef USED_AS_READ
       used[c] = use(c);
#endif
#ifndef TICK_LATER
       at[c] = epoch[c];
#endif
       c++;
       if
       :: c == CELLS -> step = READ_DONE; c = 0
       :: else
       fi }
#ifdef TICK_LATER
  :: atomic { step == TICKS && c < CELLS -> at[c] = epoch[c]; c++;
       if
       :: c == CELLS -> step = CLOSES; c = 0
       :: else
       fi }
#endif
  :: atomic { step == CLOSES && c < CELLS ->
#ifdef READ_LATER
       former[c] = d[c].division;
#endif
       may_come_again(CLOSE, c, 0, v, former[c], 0);
#ifdef CLOSE_FIRST_ONLY
       if
       :: c == 0 -> quota_close(c, former[c], v)
       :: else -> d[c].division = v; d[c].share_epoch = 0; out = OK
       fi;
#else
       quota_close(c, former[c], v);
#endif
       if
       :: out == STALE -> stop_dividing()
       :: else ->
#ifndef USED_AS_READ
          used[c] = use(c);
#endif
          former[c] = 0;
#ifdef EPOCH_AS_CLOSED
          at[c] = epoch[c];
#endif
#ifdef SHARE_AT_ONCE
          work_out_share(c); quota_share(c, v, at[c], part); part = 0;
#endif
          c++;
          step = (c == CELLS -> SHARES : CLOSES)
       fi;
       check() }
  :: atomic { step == SHARES && c > 0 ->
       c--; work_out_share(c); may_come_again(SHARE, c, 0, v, part, at[c]);
       quota_share(c, v, at[c], part); part = 0; check();
       if
       :: c == 0 -> stop_dividing()
       :: else
       fi }
  /* It has stopped. */
  :: atomic { v != 0 -> stop_dividing() }
  od
}

/* --------------------------------------------------------------------------------------------------- handing over */

#define IDLE  0
#define TAKES 1
#define VOIDS 2
#define ENDS  3

inline stop_moving() { a = 0; b = 0; v = 0; number = 0; step = IDLE; back = false }

proctype Mover() {
  byte a, b, v, number, step;
  bool back;
end:
  do
  :: atomic { step == IDLE && gives < GIVES -> pick_cells;
       v = d[a].division; may_come_again(GIVE, a, b, v, 0, 0); quota_give(a, b, v);
       if
       :: out == OK -> gives++; number = d[a].handed[b]; step = TAKES
       :: else -> a = 0; b = 0; v = 0
       fi;
       check() }
  /* Somebody finds a note. */
  :: atomic { step == IDLE && (d[0].given[1] || d[1].given[0]) ->
       if
       :: d[0].given[1] -> a = 0; b = 1
       :: d[1].given[0] -> a = 1; b = 0
       fi;
       v = d[a].division; number = d[a].given[b]; step = VOIDS }
#if CELLS > 2
  :: atomic { step == IDLE && (d[0].given[2] || d[2].given[1]) ->
       if
       :: d[0].given[2] -> a = 0; b = 2
       :: d[2].given[1] -> a = 2; b = 1
       fi;
       v = d[a].division; number = d[a].given[b]; step = VOIDS }
#endif
  :: atomic { step == TAKES ->
       may_come_again(TAKE, b, a, v, number, 0);
       quota_take(b, a, v, number, false); back = (out == GONE); step = ENDS; check();
       if
       :: out == STALE -> stop_moving()
       :: else
       fi }
  :: atomic { step == VOIDS ->
       may_come_again(VOID, b, a, v, number, 0);
#ifdef NO_VOID
       out = (has_share(b, v) -> (d[b].taken[a] == number -> SAME : OK) : STALE);
#else
       quota_take(b, a, v, number, true);
#endif
       back = (out == OK); step = ENDS; check();
       if
       :: out == STALE -> stop_moving()
       :: else
       fi }
  :: atomic { step == ENDS ->
       may_come_again((back -> BACK : GIVEN), a, b, v, number, 0);
       quota_given(a, b, v, number, back); check(); stop_moving() }
  /* It has stopped. */
  :: atomic { step != IDLE -> stop_moving() }
  od
}

/* ---------------------------------------------------------------------------------------------- claims and faults */

proctype Claims(byte x) {
end:
  do
  /* accept: its host journals it. */
  :: atomic { x < placed && attested[cell[x]] && d[cell[x]].claim[x] && page[x] == NO -> page[x] = HELD }
  /* It ends: its host stops it first, where that has taken it up. */
  :: atomic { x < placed && attested[cell[x]] && d[cell[x]].claim[x] ->
       page[x] = (page[x] == HELD -> TOMB : page[x]); d[cell[x]].claim[x] = false; counts[x] = false; check() }
  od
}

inline place(c) { cell[placed] = c; d[c].claim[placed] = true; placed++ }
inline new_epoch(c) {
  epoch[c]++; settled[c] = false; attested[c] = false; has_copy[c] = false; clear_data(copy[c]); check()
}

proctype Cell(byte c) {
end:
  do
  :: atomic { placed < CLAIMS && settled[c] && may_claim(c) && use(c) < d[c].share ->
       counts[placed] = true; place(c); check() }
#if REDECLARES
  :: atomic { placed < CLAIMS && attested[c] && is_free(c) -> counts[placed] = true; place(c) }
#endif
#if FACTS
  :: atomic { facts < FACTS && placed < CLAIMS && attested[c] -> facts++; page[placed] = HELD; place(c) }
#endif
  :: atomic { taken_copies < ROLLBACKS && !has_copy[c] -> taken_copies++; copy_data(copy[c], d[c]); has_copy[c] = true }
  :: atomic { has_copy[c] -> copy_data(d[c], copy[c]); new_epoch(c) }
#if WIPES
  :: atomic { wipes < WIPES -> wipes++; clear_data(d[c]); new_epoch(c) }
#endif
#ifdef LATE
  :: atomic { !settled[c] -> settled[c] = true;
       for (k : 0 .. CLAIMS - 1) {
         counts[k] = counts[k] && !(cell[k] == c && page[k] == HELD && !d[c].claim[k])
       };
       k = 0 }
#endif
  /* Its host attests. */
  :: atomic { !attested[c] ->
       for (k : 0 .. CLAIMS - 1) {
         d[c].claim[k] = (k < placed && cell[k] == c && page[k] != NO -> page[k] == HELD : d[c].claim[k])
       };
       k = 0; attested[c] = true; settled[c] = true; check() }
  od
}

#if REDECLARES
/* A declaration is a division of its own; the first one here was that, too. */
#define FIRST_VERSION (DIVISIONS + 3)
#ifdef DECLARE_UNNAMED
#define version_of(n) 0
#else
#define version_of(n) (FIRST_VERSION + n)
#endif

/* Take the quota back in all cells, then declare it in all. It may stop in between, for ever. */
proctype Owner() {
  byte c;
  bool declares;
end:
  do
  :: atomic { redeclares < REDECLARES && !declares ->
       clear_division(d[c]); d[c].division = 0; d[c].is_free = true; c++;
       if
       :: c == CELLS -> c = 0; declares = true
       :: else
       fi }
  :: atomic { redeclares < REDECLARES && declares ->
       clear_division(d[c]); d[c].division = version_of(redeclares + 1); d[c].is_free = false; c++;
       if
       :: c == CELLS -> c = 0; declares = false; redeclares++
       :: else
       fi;
       check() }
  od
}
#endif

/* Whatever was left: a scheduler that is left alone for a while finishes a division. */
proctype Alone() {
  byte used[CELLS];
end:
  do
  :: d_step { all_settled && !any_free ->
       for (k : 0 .. CELLS - 1) { copy_data(kept[k], d[k]) };
       for (k : 0 .. CELLS - 1) {
         quota_close(k, d[k].division, DIVISIONS + 2);
         assert(out == OK); used[k] = use(k)
       };
       for (k : 0 .. CELLS - 1) {
         work_out_share(k); quota_share(k, DIVISIONS + 2, epoch[k], part); assert(out == OK)
       };
       for (k : 0 .. CELLS - 1) { copy_data(d[k], kept[k]); used[k] = 0 };
       k = 0; part = 0 }
  od
}

init {
  atomic {
    for (n : 0 .. CELLS - 1) {
      epoch[n] = 1; settled[n] = true; attested[n] = true;
#if REDECLARES
      d[n].division = version_of(0)
#else
      d[n].division = 1; d[n].share_epoch = 1; d[n].share = LIMIT / CELLS + (n == 0 -> LIMIT % CELLS : 0)
#endif
    };
    for (n : 1 .. DIVIDERS) { run Divider(n - 1) };
    for (n : 1 .. MOVERS) { run Mover() };
    for (n : 0 .. CELLS - 1) { run Cell(n) };
    for (n : 0 .. CLAIMS - 1) { run Claims(n) };
#if COPIES
    run Late();
#endif
#if REDECLARES
    run Owner();
#endif
    run Alone();
    n = 0
  }
}
