import type { Database } from '../../shared/store/store.ts'
import type { Benchmark, BenchRow } from './define-benchmark.ts'
import { withDatabase, withEngine } from './engine.ts'
import { compare, compareWithItself, timed } from './measure.ts'

const SYNCED = 'fsync_after_insert = 1, fsync_part_directory = 1'
const NOT_SYNCED = 'fsync_after_insert = 0, fsync_part_directory = 0'
const ROUNDS = 9
const TIMES = 10

interface Insert {
  readonly what: string
  readonly tables: readonly string[]
  readonly rows: number
  /** The statement of the n-th insert, with its own times. */
  sql(rows: number, nth: number): string
}

const prices = (step: string) => (rows: number, nth: number) =>
  `INSERT INTO token_quotes_in (token, observed_at, is_latest, price, volume_24h, market_cap)
SELECT ${step}, false, 1 + number / 1000, number, number FROM numbers(${rows})`.replaceAll('{nth}', String(nth))

const PRICE_TABLES = ['token_prices', 'token_quotes', 'token_price_rollups']

const INSERTS: readonly Insert[] = [
  {
    what: 'a slot of prices',
    tables: PRICE_TABLES,
    rows: 250,
    sql: prices("number, toDateTime64('2024-01-01', 3, 'UTC') + {nth} * 300"),
  },
  {
    what: 'a chunk of history',
    tables: PRICE_TABLES,
    rows: 50_000,
    sql: prices("{nth} * 20 + number % 20, toDateTime64('2023-01-01', 3, 'UTC') + intDiv(number, 20) * 300"),
  },
  {
    what: 'a day of members',
    tables: ['discord_members', 'discord_members_latest'],
    rows: 60,
    sql: (rows, nth) => `INSERT INTO discord_members (dao, observed_at, total_members)
SELECT number, toDateTime64('2024-01-01', 3, 'UTC') + ${nth} * 86400, number FROM numbers(${rows})`,
  },
  {
    what: 'a report to the ledger',
    tables: ['coverage'],
    rows: 250,
    sql: (rows, nth) => `INSERT INTO coverage_in
SELECT 'prices', number, 300, 'stored', 'coinmarketcap', 300, ${6_000_000 + nth}, ${6_000_000 + nth} FROM numbers(${rows})`,
  },
]

/** The cost of inserts that are on the disk, and not only in the system's cache, before they complete. */
export const durability: Benchmark = {
  name: 'durability',
  about:
    'Inserts that are on the disk when they complete, against inserts that the system writes within half a minute.',
  run: ({ quick, say }) =>
    withEngine((engine) =>
      withDatabase(engine, 'synced', ({ db: synced }) =>
        withDatabase(engine, 'plain', async ({ db: plain }) => {
          const rounds = quick ? 1 : ROUNDS
          const rows: BenchRow[] = []
          let nth = 0
          const toSide = (name: string, db: Database, { sql, rows: count }: Insert) =>
            timed(name, () => db.command({ name: 'insert', sql: sql(count, nth++) }), quick ? 1 : TIMES)
          for (const insert of INSERTS) {
            for (const table of insert.tables) {
              await synced.command({ name: 'sync', sql: `ALTER TABLE ${table} MODIFY SETTING ${SYNCED}` })
              await plain.command({ name: 'do not', sql: `ALTER TABLE ${table} MODIFY SETTING ${NOT_SYNCED}` })
            }
            const [a, b] = [toSide('on the disk', synced, insert), toSide('with the system', plain, insert)]
            rows.push(await compare({ what: `${insert.what}, ${insert.rows} rows`, unit: 'ms', a, b, rounds }))
            say(`${insert.what}: ${rows.at(-1)?.ratio?.toFixed(2)}`)
          }
          const [first] = INSERTS
          if (first !== undefined)
            rows.push(await compareWithItself(toSide('with the system', plain, first), 'ms', rounds))
          return { rows, notes: ['Inserts are sequential; each creates a part in every table that it writes.'] }
        }),
      ),
    ),
}
