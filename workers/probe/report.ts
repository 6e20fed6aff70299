import { jobs } from '../jobs/list.ts'
import { toTable } from '../terminal/text-table.ts'
import type { Finding, Probe } from './finding.ts'
import type { DayPlan } from './plans.ts'

const WORDS: Readonly<Record<Finding, string>> = {
  works: 'works',
  coarser: 'works, coarser',
  nothing: 'nothing there',
  unconfigured: 'not set up',
  refused: 'refused',
  exhausted: 'plan used up',
  unreached: 'no answer',
  malformed: 'another shape',
  unknown: 'unknown id',
  'no-store': 'needs the database',
}

/** Returns whether a worker with these settings would store the requested data. */
const isGood = ({ finding }: Probe): boolean => finding === 'works' || finding === 'coarser'

/**
 * Returns whether the result needs an operator. A provider without settings is a choice, and the need for the database
 * is reported separately. History may have no data for an entity, or not know it at that time; only the probe of
 * current data decides whether an id is right.
 */
export function isWrong(probe: Probe): boolean {
  if (isGood(probe) || probe.finding === 'unconfigured' || probe.finding === 'no-store') return false
  return probe.asked === 'now' || (probe.finding !== 'nothing' && probe.finding !== 'unknown')
}

/**
 * Formats all results as a table, followed by the costs and the providers of each dataset. `plans` are the plans
 * counted by the workers.
 */
export function toReport(probes: readonly Probe[], plans: readonly DayPlan[] = []): string {
  const table = toTable(
    ['provider', 'dataset', 'asked for', 'result', 'requests', 'left', 'about', 'sample, or what is wrong'],
    probes.map((probe) => [
      probe.provider,
      probe.dataset,
      probe.asked,
      WORDS[probe.finding],
      String(probe.requests),
      probe.quotaLeft === undefined ? '-' : String(probe.quotaLeft),
      probe.entity,
      [toSample(probe), probe.reason].filter((text) => text !== '').join('; '),
    ]),
  )
  return [
    table,
    '',
    toTable(['provider', 'left today', 'costs'], toCosts(probes, plans)),
    '',
    toDatasetTable(probes),
  ].join('\n')
}

/** Reports how many providers answer, and the failing ones with their reason. */
export function toShortReport(probes: readonly Probe[]): string {
  const setUp = probes.filter(({ finding }) => finding !== 'unconfigured')
  const wrong = setUp.filter(isWrong)
  const line = `${setUp.length - wrong.length} of ${setUp.length} providers answer as expected; npm run providers prints the details.`
  return [line, ...wrong.map(({ provider, finding, reason }) => `  ${provider}: ${WORDS[finding]}: ${reason}`)].join(
    '\n',
  )
}

const toCosts = (probes: readonly Probe[], plans: readonly DayPlan[]) =>
  [...new Set(probes.map(({ provider }) => provider))].map((provider) => {
    const plan = plans.find((one) => one.provider === provider)
    return [provider, plan === undefined ? '-' : `${plan.remaining} of ${plan.perDay}`, COSTS.get(provider) ?? '-']
  })

const COSTS = new Map(jobs.flatMap(({ providers }) => providers.map(({ name, cost }) => [name, cost])))

/**
 * Lists the providers that collect each dataset with these settings, in query order, or the reason if there are none.
 */
export function toDatasetTable(probes: readonly Probe[]): string {
  const names = [...new Set(probes.map(({ dataset }) => dataset))]
  const computed = jobs.filter(({ computedFrom }) => computedFrom.length > 0)
  const rows = names.map((dataset) => {
    const order = jobs.find(({ name }) => name === dataset)?.providers.map(({ name }) => name) ?? []
    const own = probes
      .filter((probe) => probe.dataset === dataset && probe.asked === 'now')
      .sort((a, b) => order.indexOf(a.provider) - order.indexOf(b.provider))
    const by = [...new Set(own.filter(isGood).map(({ provider }) => provider))]
    const reasons = own.map(({ reason }) => reason).filter((reason) => reason !== '')
    return [dataset, by.length > 0 ? by.join(', then ') : `nobody: ${reasons.join('; ')}`]
  })
  const derived = computed.map(({ name, computedFrom }) => [
    name,
    `computed from ${computedFrom.map((one) => one.name).join(', ')}`,
  ])
  return toTable(['dataset', 'collected by'], [...rows, ...derived])
}

/** Columns that are not data: the entity, the position of a trade on its chain, and flags. */
const NO_DATA = /^(token|dao|index_key|interval|block_number|log_index|is_\w+)$/

/** Returns the first data values of a row: numbers, or else strings that are not times. */
function toSample({ sample }: Probe): string {
  const values = Object.entries(sample ?? {}).filter(([name]) => !NO_DATA.test(name))
  const numbers = values.filter(([, value]) => typeof value === 'number')
  const texts = values.filter(([name, value]) => typeof value === 'string' && value !== '' && !name.endsWith('_at'))
  return (numbers.length > 0 ? numbers : texts)
    .slice(0, 2)
    .map(([name, value]) => `${name} ${String(value).slice(0, 40)}`)
    .join(', ')
}
