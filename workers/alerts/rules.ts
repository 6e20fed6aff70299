import { z } from 'zod'
import { datasets } from '../../shared/datasets/list.ts'
import { FLOW_KINDS } from '../../shared/datasets/treasury-flows.ts'
import { toId } from '../../shared/ids.ts'
import { DAY_MS, HOUR_MS } from '../../shared/intervals.ts'
import { LIST_PATHS, LISTS, SERIES, SERIES_NAMES } from './series.ts'

/** Unique within the file, and part of the URLs of feeds. */
const name = z
  .string()
  .regex(/^[a-z0-9][a-z0-9-]{0,62}$/, 'must be lower-case letters, digits and hyphens, at most 63')
  .refine((text) => text !== 'all', 'must not be "all", which is the name of the feed of all rules')

const UNITS = { m: 60_000, h: HOUR_MS, d: DAY_MS } as const

/** `30m`, `6h` or `7d`, in milliseconds. */
const duration = z
  .string()
  .regex(/^[1-9]\d{0,3}[mhd]$/, 'must be a duration such as 30m, 6h or 7d')
  .transform((text) => Number(text.slice(0, -1)) * UNITS[text.at(-1) as keyof typeof UNITS])

const address = z
  .string()
  .transform((text) => text.toLowerCase())
  .pipe(z.string().regex(/^0x[0-9a-f]{40,64}$/, 'must be an address, 0x and 40 to 64 hexadecimal digits'))

const level = z
  .strictObject({
    kind: z.literal('level'),
    series: z.enum(SERIES_NAMES),
    above: z.number().optional(),
    below: z.number().optional(),
  })
  .refine(({ above, below }) => (above === undefined) !== (below === undefined), 'needs either above or below')

const move = z.strictObject({
  kind: z.literal('move'),
  series: z.enum(SERIES_NAMES),
  percent: z.number().positive(),
  within: duration,
  direction: z.enum(['up', 'down', 'any']).default('any'),
})

const list = z.strictObject({
  kind: z.literal('list'),
  list: z.enum(LIST_PATHS),
  filter: z.array(z.string().min(1)).min(1).max(10),
  on: z.enum(['enter', 'leave', 'both']).default('enter'),
})

const PROPOSAL_EVENTS = [
  'created',
  'started',
  'ending',
  'flipped',
  'ended',
  'queued',
  'executable',
  'executed',
  'canceled',
  'expired',
] as const
const WITH_HOURS: readonly (typeof PROPOSAL_EVENTS)[number][] = ['ending', 'flipped', 'executable']

const proposal = z
  .strictObject({
    kind: z.literal('proposal'),
    on: z.enum(PROPOSAL_EVENTS),
    /**
     * How many hours before the end of the vote, or before the proposal can be executed; for `flipped`, with which earlier
     * time the leading choice is compared.
     */
    hours: z.number().positive().max(720).optional(),
    /** Only proposals that have not reached their quorum. */
    quorumShort: z.boolean().optional(),
    unlessVotedBy: address.optional(),
  })
  .refine(
    ({ on, hours }) => WITH_HOURS.includes(on) === (hours !== undefined),
    'hours is for "on: ending", "on: flipped" and "on: executable", and needed there',
  )
  .refine(
    ({ on, unlessVotedBy }) => on === 'ending' || unlessVotedBy === undefined,
    'unlessVotedBy is for "on: ending"',
  )
  .refine(({ on, quorumShort }) => on === 'ending' || quorumShort === undefined, 'quorumShort is for "on: ending"')

const powerMove = z.strictObject({
  kind: z.literal('powerMove'),
  /** The smallest change of a delegate's power on one day, in percent of the quorum. */
  quorumPercent: z.number().positive(),
  direction: z.enum(['up', 'down', 'any']).default('any'),
})

const treasury = z.strictObject({
  kind: z.literal('treasury'),
  /** The smallest movement of one asset in US dollars, at the prices of the later day. */
  movedUsd: z.number().positive(),
  direction: z.enum(['in', 'out', 'any']).default('any'),
})

const flow = z.strictObject({
  kind: z.literal('flow'),
  /** The smallest value of a transfer in US dollars, at the price of its day. */
  overUsd: z.number().positive(),
  direction: z.enum(['in', 'out', 'any']).default('any'),
  /** Without it, all kinds but spam, swaps and internal transfers. */
  flowKind: z.enum(FLOW_KINDS).exclude(['spam']).optional(),
  counterparty: z.enum(['any', 'unknown']).default('any'),
})

const DATASET_NAMES = datasets.map((dataset) => dataset.name) as [string, ...string[]]

const dataset = z
  .strictObject({
    kind: z.literal('dataset'),
    dataset: z.enum(DATASET_NAMES),
    is: z.enum(['stale', 'incomplete', 'corrected']),
    /** The share of expected data, 0 to 1, below which a dataset is incomplete. */
    below: z.number().gt(0).max(1).optional(),
  })
  .refine(
    ({ is, below }) => (is === 'incomplete') === (below !== undefined),
    'below is for "is: incomplete", and needed there',
  )

const provider = z.strictObject({
  kind: z.literal('provider'),
  provider: z.string().min(1).optional(),
  dataset: z.enum(DATASET_NAMES).optional(),
  /** How long the provider has failed. */
  failingFor: duration.default(0),
})

const what = z.discriminatedUnion('kind', [level, move, list, proposal, powerMove, treasury, flow, dataset, provider])

const some = z
  .strictObject({
    ids: z.array(z.string()).min(1).optional(),
    names: z.array(z.string()).min(1).optional(),
    categories: z.array(z.string()).min(1).optional(),
  })
  .refine((who) => Object.keys(who).length > 0, 'needs ids, names or categories')

const rule = z.strictObject({
  name,
  description: z.string().default(''),
  what,
  who: z.union([z.literal('all'), some], 'must be "all", or ids, names or categories').default('all'),
  to: z.array(z.string()).default([]),
  cooldown: duration.default(0),
  digest: z.enum(['hourly', 'daily']).optional(),
  paused: z.boolean().default(false),
})
/** The kinds of events, each of which fires once. They are all about DAOs. */
export const FIRING_ONCE: readonly string[] = ['proposal', 'powerMove', 'treasury', 'flow']
const ruleWithCooldown = rule.refine(({ what: { kind }, cooldown }) => cooldown === 0 || !FIRING_ONCE.includes(kind), {
  path: ['cooldown'],
  error: 'is not for proposals, powers and treasuries: each event fires once',
})

const target = z.url({ protocol: /^https?$/, error: 'must be an http or https URL' })
/** Base64 of 24 to 64 bytes (Standard Webhooks, section "Signature scheme"). */
const webhookSecret = z
  .string()
  .regex(/^whsec_[A-Za-z0-9+/]{32,88}={0,2}$/, 'must be whsec_ and 24 to 64 bytes as base64')

const channel = z.discriminatedUnion('type', [
  z.strictObject({
    type: z.literal('webhook'),
    url: target,
    /** Each of them signs, so that a receiver can change its secret without a gap. */
    secrets: z.array(webhookSecret).min(1).max(4),
  }),
  z.strictObject({ type: z.literal('slack'), url: target }),
  z.strictObject({ type: z.literal('discord'), url: target }),
  z.strictObject({
    type: z.literal('telegram'),
    token: z.string().regex(/^\d+:[\w-]{20,}$/, 'must be the token of a bot, such as 123456:ABC...'),
    chat: z.union([z.string(), z.number()]).transform(String),
    server: target.default('https://api.telegram.org'),
  }),
  z
    .strictObject({
      type: z.literal('email'),
      /** `smtp` begins without TLS, at port 587 unless the URL has another one; `smtps` begins with it, at port 465. */
      url: z
        .url({ protocol: /^smtps?$/, error: 'must be an smtp or smtps URL' })
        .refine((text) => !text.includes('@'), 'must not have credentials: set user and password'),
      user: z.string().min(1).optional(),
      password: z.string().min(1).optional(),
      from: z.email(),
      /** One address, so that a message is either accepted or not. */
      to: z.email(),
    })
    .refine(({ user, password }) => (user === undefined) === (password === undefined), 'needs both user and password'),
])

/** The schema of a rules file. */
export const rulesFile = z
  .strictObject({ channels: z.record(name, channel).default({}), rules: z.array(ruleWithCooldown).default([]) })
  .superRefine(({ channels, rules }, context) => {
    const seen = new Set<string>()
    for (const [index, one] of rules.entries()) {
      if (seen.has(one.name))
        context.addIssue({ code: 'custom', path: ['rules', index, 'name'], message: 'is the name of two rules' })
      seen.add(one.name)
      for (const [at, to] of one.to.entries())
        if (channels[to] === undefined)
          context.addIssue({
            code: 'custom',
            path: ['rules', index, 'to', at],
            message: `must be a channel: ${Object.keys(channels).join(', ') || 'there are none'}`,
          })
    }
  })

export type Rule = z.infer<typeof rule>
export type What = Rule['what']
export type Channel = z.infer<typeof channel>
export type RulesFile = z.infer<typeof rulesFile>

const revisions = new WeakMap<Rule, string>()

/** A hash of the condition. If it changes, the stored state of the rule is discarded. */
export function toRevision(one: Rule): string {
  const known = revisions.get(one)
  if (known !== undefined) return known
  const revision = toId('alert rule', JSON.stringify([one.what, one.who]))
  revisions.set(one, revision)
  return revision
}

/** The datasets whose change events trigger the evaluation of a rule. The clock triggers every rule. */
export function toDatasets(condition: What): readonly string[] {
  if (condition.kind === 'level' || condition.kind === 'move') return [SERIES[condition.series].dataset]
  if (condition.kind === 'list') return LISTS[condition.list].datasets
  if (condition.kind === 'proposal') return ['governance', 'governors']
  if (condition.kind === 'powerMove') return ['delegations', 'governors']
  if (condition.kind === 'treasury') return ['treasury']
  if (condition.kind === 'flow') return ['treasury-flows']
  if (condition.kind === 'dataset') return [condition.dataset]
  return []
}
