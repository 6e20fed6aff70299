import { z } from 'zod'
import { isWallet } from '../../../../shared/datasets/treasury-flows.ts'
import { DAY_MS, toBucketStart } from '../../../../shared/intervals.ts'
import { idValue, numberIn, timeValue, uint32, usdOrNull } from '../../../../shared/record-values.ts'
import { FLOW_SOURCES } from '../../../flows/day-flows.ts'
import { RUNWAY_ASSETS, RUNWAY_BURNS, RUNWAY_REASONS } from '../../../flows/runway.ts'
import { type DaoRunway, readRunways } from '../../../flows/runways.ts'
import { LIST_HEADERS } from '../../../http/headers.ts'
import { answerComputed, asOfParameter, checkPast, wasThere } from '../../../lists/lists.ts'
import { manyReferences, oneOf, page } from '../../../parameters/kinds.ts'
import { toQuestions } from '../../../parameters/questions.ts'
import { VALUES_PER_LIST } from '../../../route/cost.ts'
import { defineRoute } from '../../../route/define-route.ts'
import { daoKind, manyOfKind, selectMany } from '../../../route/entities.ts'

const held = (what: string) => usdOrNull.describe(`Value of ${what} in US dollars; null if it is unknown.`)
const burned = (what: string) =>
  usdOrNull.describe(
    `${what}, in US dollars; null if the window is incomplete, or if none of these transfers has a price.`,
  )

const record = z
  .strictObject({
    _id: idValue.describe('Id of the DAO.'),
    name: z.string().describe('Name of the DAO.'),
    recordedAt: timeValue.nullable().describe('The first moment of the day of the holdings; null if there are none.'),
    assets: z
      .strictObject({
        definition: z
          .enum(RUNWAY_ASSETS)
          .describe("Which assets count: stablecoins, all without the DAO's own tokens, or all."),
        valueUsd: held('these assets'),
        stablecoinUsd: held("stablecoins, by this service's list of them,"),
        otherUsd: held("everything else except the DAO's own tokens"),
        ownTokenUsd: held("the DAO's own tokens"),
      })
      .describe('What the treasury holds, at most three days before.'),
    burn: z
      .strictObject({
        definition: z.enum(RUNWAY_BURNS).describe('All spending, or spending minus income.'),
        window: uint32.describe('Length of the window in days.'),
        from: timeValue.describe('First moment of the window.'),
        to: timeValue.describe('End of the window, exclusive: of the last day that was read completely.'),
        inUsd: burned('Income'),
        outUsd: burned('Spending'),
        netUsd: burned('Income minus spending'),
        perYearUsd: burned('The burn, scaled to 365 days'),
        transfers: uint32.describe('Number of transfers that count.'),
        transfersWithoutPrice: uint32.describe('Number of these without a price, whose value is not in the sums.'),
      })
      .describe('Transfers of kind `spending` and `income`, without payments in own tokens unless all assets count.'),
    years: numberIn('years')
      .nullable()
      .describe('`assets.valueUsd` divided by `burn.perYearUsd`; null with a `reason`.'),
    reason: z
      .enum(RUNWAY_REASONS)
      .nullable()
      .describe(
        'Why `years` is null: no address of the treasury is known (`no_addresses`), transfers of the window are not completely stored (`incomplete_window`), the holdings are unknown (`no_assets`) or some could not be read (`partial_assets`), over 5 % of the payments have no price (`unpriced`), or the burn is not above 0 (`no_burn`).',
      ),
    text: z.string().describe('The result and its definition in words.'),
  })
  .meta({ id: 'TreasuryRunway', description: 'How long the treasury of a DAO lasts.' })

const questions = toQuestions(record)

const toRecord = (
  { dao, holdings, window, runway }: DaoRunway,
  definition: { assets: (typeof RUNWAY_ASSETS)[number]; burn: (typeof RUNWAY_BURNS)[number]; window: 90 | 365 },
): z.infer<typeof record> => ({
  _id: dao.id,
  name: dao.name,
  recordedAt: holdings === undefined ? null : new Date(holdings.at).toISOString(),
  assets: {
    definition: definition.assets,
    valueUsd: runway.assetsUsd,
    stablecoinUsd: holdings?.stablecoinUsd ?? null,
    otherUsd: holdings?.otherUsd ?? null,
    ownTokenUsd: holdings?.ownTokenUsd ?? null,
  },
  burn: {
    ...{ definition: definition.burn, window: definition.window },
    ...{ from: new Date(window.from).toISOString(), to: new Date(window.to).toISOString() },
    ...runway.burn,
  },
  ...{ years: runway.years, reason: runway.reason, text: runway.text },
})

/** The order of lists of DAOs; the list engine puts exact matches of a name first. */
const compare = (a: DaoRunway, b: DaoRunway) =>
  Number(a.marketCap === null) - Number(b.marketCap === null) ||
  (b.marketCap ?? 0) - (a.marketCap ?? 0) ||
  (a.dao.name === b.dao.name ? a.dao.key - b.dao.key : a.dao.name < b.dao.name ? -1 : 1)

export const treasuryRunwayRoute = defineRoute({
  operation: 'listDaoTreasuryRunways',
  path: '/data/daos/treasury/runway',
  tag: 'DAOs',
  summary: 'How long the treasuries of DAOs last',
  description:
    "For all live DAOs with an address of their treasury, or those that `id` and `name` select: the value of the assets divided by a year of spending. Reports define both differently, and the results differ several times, so `text` has the definition. Swaps, investments, mints, burns, internal transfers and spam are no spending. Exact name matches come first, then by the token's market cap, largest first, then by name.",
  query: {
    ...manyOfKind(daoKind),
    category: manyReferences('category', 'categories', 'lending'),
    chain: manyReferences('chain', 'chains', 'ethereum'),
    assets: oneOf(
      RUNWAY_ASSETS,
      "The counted assets: `stable` are stablecoins, `withoutOwnToken` are all but the DAO's own tokens.",
      'stable',
    ).default('withoutOwnToken'),
    burn: oneOf(RUNWAY_BURNS, 'All spending (`gross`), or spending minus income (`net`).', 'net').default('gross'),
    window: oneOf(['90', '365'], 'Days of transfers that give the burn.', '90').default('365'),
    ...questions.parameters,
    ...asOfParameter,
    ...page('DAOs', { default: 10, max: 500 }),
  },
  record,
  estimateValues: () => VALUES_PER_LIST,
  datasets: FLOW_SOURCES,
  headers: LIST_HEADERS,
  handle: async (call) => {
    const { query, registry, now } = call
    checkPast(query.asOf, now())
    const at = query.asOf ?? now()
    const selection = selectMany(daoKind, registry, query)
    const wanted = new Set(selection.keys)
    const daos = registry.daos.filter((dao) =>
      selection.all ? wasThere(dao, at) && dao.treasuries.some(isWallet) : wanted.has(dao.key),
    )
    const definition = { assets: query.assets, burn: query.burn, window: query.window === '90' ? 90 : 365 } as const
    const found = await readRunways(call, daos, definition, { at, isPast: query.asOf !== undefined })
    const ordered = found.toSorted(compare)
    const newest = Math.max(...ordered.map(({ holdings }) => holdings?.at ?? 0))
    const sort = questions.toSort(query.sort)
    const filters = questions.toFilters(query.filter)
    const answer = await answerComputed(
      call,
      {
        name: 'treasury-runway',
        records: ordered.map((one) => toRecord(one, definition)),
        entities: ordered.map(({ dao, marketCap }) => ({ key: dao.key, marketCap })),
        asOf: newest > 0 ? newest : null,
      },
      { selection, sort, filters, limit: query.limit },
    )
    return query.asOf === undefined
      ? { ...answer, expiresAt: toBucketStart(at, '1d') + DAY_MS }
      : { ...answer, staleAt: null }
  },
})
