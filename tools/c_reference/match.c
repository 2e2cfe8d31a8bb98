/* The kernels of `kernels/match.py` in C: used by tests only, to know what the same loops cost in C.

   The translation goes pass by pass. Names in capitals (slots of the header, sizes, keys, kinds) are defined by `native.py`
   from the constants that the Python kernels see. What differs: sections are pointers instead of views; the search for a
   bucket and the exact look are functions, which the compiler inlines, where Python does it by hand. */

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#ifdef __AVX__
#include <immintrin.h>
#endif

typedef struct {
    int64_t columns, blocks, always_blocks;
    const int64_t *mode, *bounds_at, *bounds, *buckets_at, *owner, *predicate, *sets;
    const int32_t *visits_at, *visits, *always, *span, *block_columns_at, *predicates_at;
    const uint64_t *alive, *bits;
    const uint16_t *block_columns;
    const uint8_t *row_of;
} Arena;

static inline Arena opened(const int64_t *words)
{
#define SECTION(slot) ((const void *)(words + words[slot]))
    return (Arena){
        .columns = words[COLUMNS], .blocks = words[BLOCKS], .always_blocks = words[ALWAYS_BLOCKS],
        .mode = SECTION(MODE), .bounds_at = SECTION(BOUNDS_AT), .bounds = SECTION(BOUNDS),
        .buckets_at = SECTION(BUCKETS_AT), .owner = SECTION(OWNER), .predicate = SECTION(PREDICATE),
        .sets = SECTION(SETS), .visits_at = SECTION(VISITS_AT), .visits = SECTION(VISITS), .always = SECTION(ALWAYS),
        .span = SECTION(SPAN), .block_columns_at = SECTION(BLOCK_COLUMNS_AT), .predicates_at = SECTION(PREDICATES_AT),
        .alive = SECTION(ALIVE), .bits = SECTION(BITS), .block_columns = SECTION(BLOCK_COLUMNS), .row_of = SECTION(ROW_OF),
    };
}

/* The place of a key's bucket among those of all columns. */
static inline int64_t place_of(const Arena *a, int64_t column, int64_t key)
{
    int64_t base = a->buckets_at[column];
    if (a->mode[column] == HASHED) {
        uint64_t count = a->buckets_at[column + 1] - base, spread = (uint64_t)key * (uint64_t)GOLDEN >> 40;
        return base + (int64_t)((spread & 0xFFFF) * count >> 16);
    }
    const int64_t *first = a->bounds + a->bounds_at[column], *low = first;
    int64_t length = a->bounds_at[column + 1] - a->bounds_at[column];
    while (length > 0) {
        int64_t half = length >> 1;
        if (low[half] <= key) {
            low += half + 1;
            length -= half + 1;
        } else
            length = half;
    }
    return base + (low - first);
}

/* 512 bits, one for each entry of a block; in a register, where Python has an array that its intrinsics load and store. */
typedef uint64_t Row __attribute__((vector_size(8 * LANES), aligned(8), may_alias));

static inline Row row_at(const uint64_t *words)
{
    return *(const Row *)words;
}

/* Is no bit left? gcc 12 makes eight moves of a loop over the lanes where one instruction will do, as LLVM knows. */
static inline bool is_empty(Row row)
{
#ifdef __AVX512F__
    return !_mm512_test_epi64_mask((__m512i)row, (__m512i)row);
#elif defined __AVX__
    const __m256i *half = (const __m256i *)&row, left = half[0] | half[1];
    return _mm256_testz_si256(left, left);
#else
    return !(row[0] | row[1] | row[2] | row[3] | row[4] | row[5] | row[6] | row[7]);
#endif
}

/* The exact look: does an event, whose keys lie `stride` apart, satisfy an entry? Not sure, if a key is wild. */
static inline bool satisfied(const Arena *a, int64_t entry, const int64_t *keys, int64_t stride, bool *sure)
{
    const int64_t *p = a->predicate + 3 * (int64_t)a->predicates_at[entry];
    const int64_t *end = a->predicate + 3 * (int64_t)a->predicates_at[entry + 1];
    *sure = true;
    for (; p < end; p += 3) {
        int64_t key = keys[(p[0] & 0xFFFF) * stride], kind = p[0] >> 16 & 3, low = p[1], high = p[2];
        bool ok;
        if (key == WILD_KEY) {
            *sure = false;
            ok = true;
        } else if (kind == RANGE)
            ok = low <= key && key <= high;
        else if (kind == NOT_RANGE)
            ok = key < low || key > high;
        else {
            bool inside = false;
            while (low < high && !inside) {
                int64_t middle = (low + high) >> 1;
                if (a->sets[middle] < key)
                    low = middle + 1;
                else if (a->sets[middle] > key)
                    high = middle;
                else
                    inside = true;
            }
            ok = inside == (kind == SET);
        }
        if (!ok)
            return false;
    }
    return true;
}

int64_t match_one(const int64_t *words, const int64_t *keys, int64_t *scratch, int64_t *out, int64_t room)
{
    const Arena a = opened(words);
    int64_t now = ++scratch[0], *stamp = scratch + 1;
    int64_t *block_list = stamp + a.blocks, *entry_list = block_list + a.blocks, *rows = entry_list + a.blocks * BLOCK;
    int64_t found = 0, left = 0, matched = 0;
    /* 1. The blocks to visit. */
    for (int64_t i = 0; i < a.always_blocks; i++) {
        stamp[a.always[i]] = now;
        block_list[found++] = a.always[i];
    }
    for (int64_t column = 0; column < a.columns; column++) {
        int64_t key = keys[column];
        if (key == MISSING_KEY)
            rows[column] = 0;
        else if (key == WILD_KEY) {
            rows[column] = WILD_ROW;
            for (int64_t block = a.span[2 * column]; block < a.span[2 * column + 1]; block++)
                if (stamp[block] != now) {
                    stamp[block] = now;
                    block_list[found++] = block;
                }
        } else {
            int64_t place = place_of(&a, column, key), last = a.visits_at[place + 1];
            rows[column] = a.row_of[place];
            for (int64_t v = a.visits_at[place]; v < last; v++) {
                int64_t block = a.visits[v];
                if (stamp[block] != now) {
                    stamp[block] = now;
                    block_list[found++] = block;
                }
            }
        }
    }
    /* 2. The entries that their rows leave. */
    for (int64_t b = 0; b < found; b++) {
        int64_t block = block_list[b];
        if (b + 2 < found) {
            int64_t ahead = block_list[b + 2];
            __builtin_prefetch(a.alive + ahead * LANES);
            for (int64_t j = a.block_columns_at[ahead]; j < a.block_columns_at[ahead + 1]; j++)
                if (rows[a.block_columns[j]] != WILD_ROW)
                    __builtin_prefetch(a.bits + (j * ROWS + rows[a.block_columns[j]]) * LANES);
        }
        Row acc = row_at(a.alive + block * LANES);
        for (int64_t j = a.block_columns_at[block]; j < a.block_columns_at[block + 1] && !is_empty(acc); j++) {
            int64_t row = rows[a.block_columns[j]];
            if (row != WILD_ROW)
                acc &= row_at(a.bits + (j * ROWS + row) * LANES);
        }
        if (is_empty(acc))
            continue;
        for (int lane = 0; lane < LANES; lane++)
            for (uint64_t word = acc[lane]; word; word &= word - 1) {
                int64_t entry = block * BLOCK + lane * 64 + __builtin_ctzll(word);
                entry_list[left++] = entry;
                __builtin_prefetch(a.predicates_at + entry);
            }
    }
    /* 3. The exact look. */
    for (int64_t c = 0; c < left; c++) {
        if (c + 12 < left) {
            const int64_t *ahead = a.predicate + 3 * (int64_t)a.predicates_at[entry_list[c + 12]];
            __builtin_prefetch(ahead);
            __builtin_prefetch(ahead + 8);
        }
        bool sure;
        if (satisfied(&a, entry_list[c], keys, 1, &sure)) {
            if (matched < room) {
                int64_t owner = a.owner[entry_list[c]];
                out[matched] = sure ? owner : -owner - 1;
            }
            matched++;
        }
    }
    return matched;
}

/* One event after the other (keys: events × columns); for timing without the cost of calls from Python. */
int64_t match_many(const int64_t *words, int64_t events, const int64_t *keys, int64_t *scratch, int64_t *out, int64_t room)
{
    int64_t matched = 0;
    for (int64_t event = 0; event < events; event++)
        matched += match_one(words, keys + event * words[COLUMNS], scratch, out, room);
    return matched;
}

int64_t match_batch(const int64_t *words, int64_t events, const int64_t *keys, int32_t *out_event, int64_t *out_owner, int64_t room)
{
    const Arena a = opened(words);
    /* 1. The bucket of every key; for each event the places its keys lead to; for each block the events that visit it. */
    int32_t *places = malloc(a.columns * events * sizeof *places);
    uint8_t *rows = malloc(a.columns * events);
    int32_t *listed_at = calloc(events + 1, sizeof *listed_at);
    for (int64_t column = 0; column < a.columns; column++)
        for (int64_t event = 0; event < events; event++) {
            int64_t at = column * events + event, key = keys[at];
            if (key == MISSING_KEY) {
                places[at] = -1;
                rows[at] = 0;
                continue;
            }
            listed_at[event + 1]++;
            if (key == WILD_KEY) {
                places[at] = -2 - column;
                rows[at] = WILD_ROW;
            } else {
                places[at] = place_of(&a, column, key);
                rows[at] = a.row_of[places[at]];
            }
        }
    for (int64_t event = 0; event < events; event++)
        listed_at[event + 1] += listed_at[event];
    int32_t *listed = malloc(listed_at[events] * sizeof *listed);
    int32_t *cursor = malloc((events + 1) * sizeof *cursor);
    memcpy(cursor, listed_at, (events + 1) * sizeof *cursor);
    for (int64_t column = 0; column < a.columns; column++)
        for (int64_t event = 0; event < events; event++)
            if (places[column * events + event] != -1)
                listed[cursor[event]++] = places[column * events + event];
    free(cursor);
    int32_t *start = calloc(a.blocks + 1, sizeof *start), *stamp = malloc(a.blocks * sizeof *stamp), *fill = NULL;
    cursor = malloc((a.blocks + 1) * sizeof *cursor);
    for (int turn = 0; turn < 2; turn++) { /* count the events of each block, then list them */
        memset(stamp, -1, a.blocks * sizeof *stamp);
        for (int64_t event = 0; event < events; event++) {
            for (int64_t i = 0; i < a.always_blocks; i++) {
                int64_t block = a.always[i];
                stamp[block] = event;
                if (turn == 0)
                    start[block + 1]++;
                else
                    fill[cursor[block]++] = event;
            }
            for (int64_t j = listed_at[event]; j < listed_at[event + 1]; j++) {
                int64_t place = listed[j];
                int64_t first = place < 0 ? a.span[2 * (-2 - place)] : a.visits_at[place];
                int64_t last = place < 0 ? a.span[2 * (-2 - place) + 1] : a.visits_at[place + 1];
                for (int64_t v = first; v < last; v++) {
                    int64_t block = place < 0 ? v : a.visits[v];
                    if (stamp[block] != event) {
                        stamp[block] = event;
                        if (turn == 0)
                            start[block + 1]++;
                        else
                            fill[cursor[block]++] = event;
                    }
                }
            }
        }
        if (turn == 0) {
            for (int64_t block = 0; block < a.blocks; block++)
                start[block + 1] += start[block];
            fill = malloc(start[a.blocks] * sizeof *fill);
            memcpy(cursor, start, (a.blocks + 1) * sizeof *cursor);
        }
    }
    /* 2. Block by block: AND of rows, then the exact look. */
    int64_t matched = 0;
    for (int64_t block = 0; block < a.blocks; block++)
        for (int64_t e = start[block]; e < start[block + 1]; e++) {
            int64_t event = fill[e];
            Row acc = row_at(a.alive + block * LANES);
            for (int64_t j = a.block_columns_at[block]; j < a.block_columns_at[block + 1] && !is_empty(acc); j++) {
                int64_t row = rows[a.block_columns[j] * events + event];
                if (row != WILD_ROW)
                    acc &= row_at(a.bits + (j * ROWS + row) * LANES);
            }
            if (is_empty(acc))
                continue;
            for (int lane = 0; lane < LANES; lane++)
                for (uint64_t word = acc[lane]; word; word &= word - 1) {
                    int64_t entry = block * BLOCK + lane * 64 + __builtin_ctzll(word);
                    bool sure;
                    if (satisfied(&a, entry, keys + event, events, &sure)) {
                        if (matched < room) {
                            out_event[matched] = event;
                            out_owner[matched] = sure ? a.owner[entry] : -a.owner[entry] - 1;
                        }
                        matched++;
                    }
                }
        }
    free(places), free(rows), free(listed_at), free(listed), free(cursor), free(start), free(stamp), free(fill);
    return matched;
}
