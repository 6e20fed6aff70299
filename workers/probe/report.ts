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

/** Whether a worker with these settings would store what was asked for. */
const isGood = ({ finding }: Probe): boolean => finding === 'works' || finding === 'coarser'

/**
 * Whether somebody has to do something. What is not set up is a choice, what needs the database is known elsewhere, and
 * history may have nothing of an entity, or not know it that long ago; whether its id is right is told by what is asked now.
 */
export function isWrong(probe: Probe): boolean {
  if (isGood(probe) || probe.finding === 'unconfigured' || probe.finding === 'no-store') return false
  return probe.asked === 'now' || (probe.finding !== 'nothing' && probe.finding !== 'unknown')
}

/**
 * A table of all answers, and below it what they cost and by whom each dataset is collected. `plans` are those that the
 * workers count.
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

/** How many providers answer, which do not and why. */
export function toShortReport(probes: readonly Probe[]): string {
  const setUp = probes.filter(({ finding }) => finding !== 'unconfigured')
  const wrong = setUp.filter(isWrong)
  const line = `${setUp.length - wrong.length} of ${setUp.length} providers answer as expected; npm run providers says more of each.`
  return [line, ...wrong.map(({ provider, finding, reason }) => `  ${provider}: ${WORDS[finding]}: ${reason}`)].join(
    '\n',
  )
}

const toCosts = (probes: readonly Probe[], plans: readonly DayPlan[]) =>
  [...new Set(probes.map(({ provider }) => provider))].map((provider) => {
    const plan = plans.find((one) => one.provider === provider)
    return [provider, plan === undefined ? '-' : `${plan.left} of ${plan.perDay}`, COSTS.get(provider) ?? '-']
  })

const COSTS = new Map(jobs.flatMap(({ providers }) => providers.map(({ name, cost }) => [name, cost])))

/** By whom each dataset is collected with these settings, in the order in which they are asked, or why by nobody. */
export function toDatasetTable(probes: readonly Probe[]): string {
  const asked = [...new Set(probes.map(({ dataset }) => dataset))]
  const computed = jobs.filter(({ computedFrom }) => computedFrom.length > 0)
  const rows = asked.map((dataset) => {
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

/** Whom a row is about, where a trade stands on its chain, and what is only marked. */
const NO_DATA = /^(token|dao|index_key|interval|block_number|log_index|is_\w+)$/

/** The first values of a row that are its data: numbers, or else texts that are no times. */
function toSample({ sample }: Probe): string {
  const values = Object.entries(sample ?? {}).filter(([name]) => !NO_DATA.test(name))
  const numbers = values.filter(([, value]) => typeof value === 'number')
  const texts = values.filter(([name, value]) => typeof value === 'string' && value !== '' && !name.endsWith('_at'))
  return (numbers.length > 0 ? numbers : texts)
    .slice(0, 2)
    .map(([name, value]) => `${name} ${String(value).slice(0, 40)}`)
    .join(', ')
}
