import { z } from 'zod'
import { groupBy } from '../../../shared/group-by.ts'
import { DAY_MS } from '../../../shared/intervals.ts'
import type { Dao } from '../../../shared/registry/entities.ts'
import { toWholeTokens } from '../../../shared/whole-tokens.ts'
import { findEntities } from '../rule-entities.ts'
import { formatTime } from '../state.ts'
import { type Evaluate, isSelected, NUMBER, type Result, toRequest, toSelection } from './condition.ts'

const WITHIN_DAYS = 2

const moveRow = z.object({
  dao: z.number(),
  delegate: z.string(),
  day: z.int(),
  at: z.int(),
  before: z.number(),
  after: z.number(),
})

/** The power of each delegate at the start and at the end of each of the last days with a change, in whole tokens. */
const MOVES = `
SELECT dao, delegate, toInt64(day) AS day, toInt64(toUnixTimestamp(last_at)) * 1000 AS at,
  ${toWholeTokens('first_units', 'decimals')} AS before, ${toWholeTokens('last_units', 'decimals')} AS after
FROM
(
  SELECT dao, delegate, toUInt32(toDate(at)) AS day, max(at) AS last_at, any(decimals) AS decimals,
    argMin(previous, (block_number, log_index)) AS first_units, argMax(power, (block_number, log_index)) AS last_units
  FROM delegate_powers WHERE ${isSelected('dao')} AND at >= fromUnixTimestamp64Milli({since: Int64}, 'UTC')
  GROUP BY dao, delegate, day
)
WHERE first_units != last_units`

const quorumRow = z.object({ dao: z.number(), quorum: z.number() })

/** The quorum that the governors of each DAO stated last. */
const QUORUMS = `
SELECT dao, argMax(assumeNotNull(quorum), starts_at) AS quorum FROM dao_proposal_details FINAL
WHERE ${isSelected('dao')} AND isNotNull(quorum_exact) AND isNotNull(starts_at)
GROUP BY dao`

/** The quorum of a DAO in whole tokens: that of its last proposal, or else the constant of the registry. */
const toQuorum = (dao: Dao | undefined, stated: number | undefined, now: number) =>
  stated ?? dao?.votingToken?.quorums.findLast(({ from }) => Date.parse(from) <= now)?.power ?? undefined

const DELEGATES_PATH = '/data/daos/governance/delegates/historic'

/**
 * A delegate's power changed on one UTC day by a part of the quorum. The condition fires once for each delegate and
 * day.
 */
export const evaluatePowerMoves: Evaluate<'powerMove'> = async (rules, { db, registry, now }) => {
  const entities = new Map(rules.map((rule) => [rule.name, findEntities(rule, registry) ?? []]))
  const daos = [...new Set([...entities.values()].flatMap((own) => own.map(({ key }) => key)))]
  // Whole days, so that the change of a day is complete.
  const since = Math.floor(now / DAY_MS - WITHIN_DAYS) * DAY_MS
  const params = { ...toSelection(daos), since }
  const [moves, stated] = await Promise.all([
    db.rows({ name: 'alert-powers', sql: MOVES, params, schema: moveRow }),
    db.rows({ name: 'alert-quorums', sql: QUORUMS, params, schema: quorumRow }),
  ])
  const byDao = groupBy(moves, ({ dao }) => dao)
  const quorumOf = new Map(stated.map(({ dao, quorum }) => [dao, quorum]))
  return new Map(
    rules.map((rule): [string, Result] => {
      const { quorumPercent, direction } = rule.what
      const events = (entities.get(rule.name) ?? []).flatMap((entity) => {
        const quorum = toQuorum(registry.daoById.get(entity.id), quorumOf.get(entity.key), now)
        if (quorum === undefined || quorum === 0) return []
        const least = (quorumPercent / 100) * quorum
        return (byDao.get(entity.key) ?? []).flatMap(({ delegate, day, at, before, after }) => {
          const moved = after - before
          if (Math.abs(moved) < least || (direction !== 'any' && moved > 0 !== (direction === 'up'))) return []
          return {
            ...{ entity, page: `/daos/${entity.id}`, unit: 'voting power', value: after, before, threshold: least },
            request: toRequest(DELEGATES_PATH, { id: entity.id, address: delegate }),
            ...{ subject: `${entity.id} ${delegate} ${day}`, at, observedAt: at },
            describe: () => ({
              title: `${entity.name}: a delegate ${moved > 0 ? 'gained' : 'lost'} ${NUMBER.format((Math.abs(moved) / quorum) * 100)} % of the quorum`,
              text: `The power of ${delegate} changed from ${NUMBER.format(before)} to ${NUMBER.format(after)} until ${formatTime(at)}; the quorum is ${NUMBER.format(quorum)}.`,
            }),
          }
        })
      })
      return [rule.name, { type: 'events', events }]
    }),
  )
}
