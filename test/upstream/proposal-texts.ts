import { toNoiseKey, unit } from './noise.ts'

/** Subjects of proposals. */
const SUBJECTS = [
  'grant',
  'parameter',
  'swap',
  'budget',
  'deployment',
  'incentives',
  'upgrade',
  'compensation',
  'election',
  'allocation',
] as const
type Subject = (typeof SUBJECTS)[number]

/** Subjects on which a vote is for or against. The others have candidates or options. */
const YES_OR_NO = SUBJECTS.slice(0, 8)

/** The DAO as its proposals mention it. */
export interface Proposer {
  readonly name: string
  /** Symbol of its token. */
  readonly symbol: string
  /** Value of its tokens in USD, which determines the size of requests. */
  readonly worth: number
}

/** A call of a contract by its signature, with the values of its arguments. */
export interface WrittenCall {
  readonly target: `0x${string}`
  readonly signature: string
  readonly values: readonly unknown[]
}

export interface WrittenProposal {
  readonly title: string
  /** Markdown, without the title. */
  readonly body: string
  /** Voting type on Snapshot. */
  readonly type: string
  readonly choices: readonly string[]
  /** Contract calls on a governor. */
  readonly calls: readonly WrittenCall[]
}

const TEAMS = [
  ...['Meridian Labs', 'Basalt Research', 'Kestrel Security', 'Openfield Collective', 'Tern & Tide', 'Quillwork'],
  ...['Northlight Studio', 'Fathom Analytics', 'Lattice Guild', 'Cobalt Audits', 'Hearth Cooperative', 'Sundial'],
  ...['Marrow Data', 'Copperline', 'Ferrous Engineering', 'Ashgrove Governance', 'Plain Ledger', 'Windward DAO'],
]
const PEOPLE = [
  ...['Amara O.', 'Benedikt R.', 'Chiara V.', 'Dmytro K.', 'Eun-ji P.', 'Farid N.', 'Greta L.', 'Hiroto S.'],
  ...['Ines M.', 'Jonas W.', 'Kavya T.', 'Leandro B.', 'Mirela D.', 'Noor A.', 'Oskar H.', 'Priya G.'],
]
const WORKS = [
  ['a governance dashboard', 'Delegates compare proposals in spreadsheets today, and each of them repeats the work.'],
  ['a bug bounty program', 'The contracts hold more value than the current bounty of the program reflects.'],
  ['open risk models', 'Parameter changes are decided with models that only their authors can run.'],
  ['a mobile wallet integration', 'Most new holders never open a desktop browser, and cannot vote from a phone.'],
  ['developer documentation', 'Integrators ask the same questions every week, and the answers are not written down.'],
  ['a subgraph rewrite', 'The current indexer is hours behind on busy days, so interfaces show old balances.'],
  ['a delegate onboarding program', 'Half of the delegated power belongs to delegates without a vote this year.'],
  ['formal verification of core contracts', 'Tests cover known behaviour; proofs cover all inputs.'],
  ['regional meetups', 'Contributors outside of two time zones rarely meet, and most leave within a year.'],
  ['a treasury reporting service', 'Token holders cannot see what was spent without reading transactions.'],
] as const
const CHAINS = ['Arbitrum', 'Base', 'Optimism', 'Polygon', 'Scroll', 'Linea', 'Gnosis Chain', 'Celo', 'Avalanche']
const PARAMETERS = [
  ['the voting period', 'setVotingPeriod(uint256)', [28_800, 36_000, 43_200, 50_400], 'blocks'],
  ['the voting delay', 'setVotingDelay(uint256)', [7_200, 10_800, 14_400, 21_600], 'blocks'],
  ['the quorum', 'updateQuorumNumerator(uint256)', [2, 3, 4, 6], 'percent'],
  ['the proposal threshold', 'setProposalThreshold(uint256)', [25_000, 50_000, 100_000, 250_000], 'tokens'],
  ['the timelock delay', 'setDelay(uint256)', [86_400, 172_800, 259_200, 345_600], 'seconds'],
  ['the protocol fee', 'setFeeProtocol(uint8,uint8)', [4, 5, 6, 8], 'parts'],
] as const
const COUNCILS = ['Grants Committee', 'Security Council', 'Treasury Working Group', 'Risk Council', 'Delegate Council']
const POOLS = ['ETH', 'USDC', 'wstETH', 'WBTC', 'DAI', 'USDT']
const USDC = '0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48'
const WEEK = 604_800

/** Everything that the texts of a proposal vary in. */
interface Facts extends Proposer {
  readonly number: number
  /** Time of the proposal in Unix seconds. */
  readonly at: number
  readonly team: string
  readonly work: (typeof WORKS)[number]
  readonly chain: string
  readonly council: string
  readonly pool: string
  readonly parameter: (typeof PARAMETERS)[number]
  /** Old and new value of the parameter. */
  readonly change: readonly [number, number]
  /** USD. */
  readonly amount: number
  readonly months: number
  readonly quarter: string
  readonly recipient: `0x${string}`
  readonly contract: `0x${string}`
  /** A member of a list by position: stable for a proposal. */
  pick<T>(list: readonly T[], position: number): T
}

/**
 * Writes a proposal as DAOs do. Texts are composed from templates, so they are the same for the same key.
 * @param number position among the proposals of its space or governor.
 * @param onlyYesOrNo whether the vote must be for or against, as on governors.
 */
export function writeProposal(
  key: number,
  proposer: Proposer,
  { number, at, onlyYesOrNo }: { number: number; at: number; onlyYesOrNo: boolean },
): WrittenProposal {
  const facts = toFacts(key, proposer, number, at)
  const subject = toSubject(proposer, number, onlyYesOrNo)
  const { title, motivation, specification, calls } = WRITERS[subject](facts)
  const sections = [
    ['Summary', facts.pick(SUMMARIES, 20)(title, facts)],
    ['Motivation', `${motivation} ${facts.pick(REASONS, 21)}`],
    ['Specification', specification],
    ['Timeline', toTimeline(facts)],
    [facts.pick(['Risks', 'Considerations', 'Drawbacks'], 22), facts.pick(RISKS, 23)],
    ['Next steps', facts.pick(NEXT_STEPS, 24)],
  ]
  return {
    title: toTitle(title, facts),
    body: sections.map(([heading, text]) => `## ${heading}\n\n${text}`).join('\n\n'),
    ...toBallot(subject, facts),
    calls,
  }
}

/** Every fifth vote on Snapshot has candidates or options. Subjects of a DAO take turns, in an order that shifts. */
const toSubject = ({ name }: Proposer, number: number, onlyYesOrNo: boolean): Subject => {
  if (!onlyYesOrNo && number % 5 === 3) return number % 10 === 3 ? 'election' : 'allocation'
  const turn = 5 * number + Math.floor(number / YES_OR_NO.length) + name.length
  return YES_OR_NO[turn % YES_OR_NO.length] ?? 'grant'
}

function toFacts(key: number, proposer: Proposer, number: number, at: number): Facts {
  const pick = <T>(list: readonly T[], position: number) => list[Math.floor(unit(key, position) * list.length)] as T
  const parameter = pick(PARAMETERS, 6)
  const from = Math.floor(unit(key, 7) * 4)
  const change = [parameter[2][from] ?? 0, parameter[2][(from + 1) % 4] ?? 0] as const
  const date = new Date(at * 1000)
  const address = (position: number) => toAddress(key, position)
  return {
    ...{ ...proposer, number, at, parameter, change, pick },
    ...{ team: pick(TEAMS, 2), work: pick(WORKS, 3), chain: pick(CHAINS, 4), council: pick(COUNCILS, 5) },
    pool: pick(POOLS, 8),
    amount: toRound(Math.min(6e6, Math.max(12_000, proposer.worth * 1e-5 * 30 ** unit(key, 9)))),
    months: pick([3, 6, 6, 12], 10),
    quarter: `Q${1 + Math.floor(date.getUTCMonth() / 3)} ${date.getUTCFullYear()}`,
    ...{ recipient: address(40), contract: address(50) },
  }
}

function toAddress(key: number, position: number): `0x${string}` {
  const words = [0, 1, 2, 3, 4].map((word) => Math.floor(unit(key ^ 0xadd4, position + word) * 0x1_0000_0000))
  return `0x${words.map((word) => word.toString(16).padStart(8, '0')).join('')}`
}

/** Two significant digits. */
const toRound = (amount: number) => Number(amount.toPrecision(2))
const toMoney = (amount: number) => `$${amount.toLocaleString('en-US', { maximumFractionDigits: 0 })}`
const toDay = (at: number) => new Date(at * 1000).toISOString().slice(0, 10)

/** Each DAO numbers its proposals in its own way, or not at all. */
function toTitle(title: string, { number, symbol, name }: Facts): string {
  const series = `${symbol.slice(0, 1)}IP-${number}`
  const prefixes = ['', '', `${series}: `, `[${series}] `]
  return `${prefixes[Math.floor(unit(toNoiseKey(0, name), 1) * prefixes.length)]}${title}`
}

interface Written {
  readonly title: string
  readonly motivation: string
  readonly specification: string
  readonly calls: readonly WrittenCall[]
}

const dollars = (amount: number) => BigInt(Math.round(amount)) * 1_000_000n
const transfer = ({ recipient }: Facts, amount: number): WrittenCall => ({
  target: USDC,
  signature: 'transfer(address,uint256)',
  values: [recipient, dollars(amount)],
})

function toBudget({ amount }: Facts, lines: readonly (readonly [string, number])[]): string {
  const rows = lines.map(([item, share]) => `| ${item} | ${toMoney(amount * share)} |`)
  return ['| Item | Amount |', '| --- | ---: |', ...rows, `| **Total** | **${toMoney(amount)}** |`].join('\n')
}

const WRITERS: Readonly<Record<Subject, (facts: Facts) => Written>> = {
  grant: (facts) => {
    const { team, work, amount, months, pick } = facts
    const verb = pick(['Fund', 'Grant to', 'Support'], 12)
    return {
      title: verb === 'Grant to' ? `Grant to ${team} for ${work[0]}` : `${verb} ${work[0]} by ${team}`,
      motivation: work[1],
      specification: `${team} receives ${toMoney(amount)} in USDC for ${work[0]}. The work lasts ${months} months and is published under an open licence.\n\n${toBudget(
        facts,
        [
          ['Engineering', 0.62],
          ['Design and research', 0.18],
          ['Audits', 0.14],
          ['Operations', 0.06],
        ],
      )}\n\nThe first third is paid when the vote passes. The rest follows the milestones below.`,
      calls: [transfer(facts, amount / 3)],
    }
  },
  parameter: (facts) => {
    const { parameter, change, name, contract } = facts
    const [label, signature, , unitName] = parameter
    const [from, to] = change
    const count = signature.includes(',') ? 2 : 1
    const isTokens = unitName === 'tokens'
    const value = isTokens ? BigInt(to) * 10n ** 18n : BigInt(to)
    return {
      title: `${to > from ? 'Raise' : 'Lower'} ${label} to ${to.toLocaleString('en-US')} ${unitName}`,
      motivation: `${name} has used ${from.toLocaleString('en-US')} ${unitName} since the contracts were deployed. Participation and volumes have changed since then.`,
      specification: `The proposal changes ${label} from **${from.toLocaleString('en-US')}** to **${to.toLocaleString('en-US')}** ${unitName}. Nothing else changes.\n\n\`\`\`\n${signature} -> ${to}\n\`\`\``,
      calls: [{ target: contract, signature, values: Array.from({ length: count }, () => value) }],
    }
  },
  swap: (facts) => {
    const { symbol, amount, months, pick, recipient, contract } = facts
    const asset = pick(['USDC', 'ETH', 'wstETH'], 13)
    return {
      title: `Diversify the treasury: ${toMoney(amount)} of ${symbol} into ${asset}`,
      motivation: `Most of the treasury is ${symbol}, so a fall of its price shortens the runway exactly when funds are needed.`,
      specification: `The treasury sells ${symbol} worth ${toMoney(amount)} for ${asset} within ${months} months:\n\n- at most 5 % of the daily volume\n- no sale below 80 % of the 30-day average price\n- proceeds stay in the treasury and are reported monthly`,
      calls: [
        { target: contract, signature: 'approve(address,uint256)', values: [recipient, dollars(amount) * 10n ** 12n] },
        { target: recipient, signature: 'deposit(uint256)', values: [dollars(amount) * 10n ** 12n] },
      ],
    }
  },
  budget: (facts) => {
    const { council, quarter, amount, name, recipient, contract, at } = facts
    const [start, end] = [BigInt(at + WEEK), BigInt(at + 14 * WEEK)]
    return {
      title: `${council} budget for ${quarter}`,
      motivation: `The ${council} has worked for ${name} for a year and reports each month. Its current budget ends this quarter.`,
      specification: `The budget for ${quarter} is ${toMoney(amount)}, paid as a stream that the DAO can cancel at any time.\n\n${toBudget(
        facts,
        [
          ['Contributors', 0.55],
          ['Grants', 0.25],
          ['Software and audits', 0.12],
          ['Reserve', 0.08],
        ],
      )}\n\nUnspent funds return to the treasury at the end of the quarter.`,
      calls: [
        { target: USDC, signature: 'approve(address,uint256)', values: [contract, dollars(amount)] },
        {
          target: contract,
          signature: 'createStream(address,uint256,address,uint256,uint256)',
          values: [recipient, dollars(amount), USDC, start, end],
        },
      ],
    }
  },
  deployment: ({ chain, name, team, recipient, contract }) => ({
    title: `Deploy ${name} on ${chain}`,
    motivation: `${chain} has grown in users and value, and three integrators have announced that they need ${name} there.`,
    specification: `${team} deploys the audited contracts on ${chain} without changes. Governance keeps control by messages over the canonical bridge.\n\n1. Deploy and verify the contracts\n2. Transfer ownership to the bridge receiver\n3. Register the deployment in the name record`,
    calls: [
      { target: contract, signature: 'setController(address)', values: [recipient] },
      { target: recipient, signature: 'transferOwnership(address)', values: [contract] },
    ],
  }),
  incentives: (facts) => {
    const { symbol, pool, amount, months, contract } = facts
    return {
      title: `${months}-month incentives for ${symbol}/${pool} liquidity`,
      motivation: `A trade of ${toMoney(100_000)} moves the price of ${symbol} by more than 2 % today, which keeps funds and lenders away.`,
      specification: `${toMoney(amount)} in ${symbol} is distributed to liquidity of ${symbol}/${pool} over ${months} months. Rewards halve if the depth within 2 % stays above the goal for four weeks.\n\n| Month | Share |\n| --- | ---: |\n| 1 | 40 % |\n| 2 | 35 % |\n| 3 and later | 25 % |`,
      calls: [
        {
          target: contract,
          signature: 'increaseAllowance(address,uint256)',
          values: [facts.recipient, dollars(amount)],
        },
        transfer(facts, amount),
      ],
    }
  },
  upgrade: ({ name, team, recipient, contract, pick }) => {
    const version = `v${pick([2, 3, 4], 14)}.${pick([0, 1, 2, 5], 15)}`
    return {
      title: `Upgrade ${name} contracts to ${version}`,
      motivation: `Version ${version} fixes two findings of the last audit and reduces the gas of common calls by about a fifth.`,
      specification: `The proxy at \`${contract}\` points to the implementation at \`${recipient}\`. Storage layout and interfaces stay compatible. ${team} audited the change and found no open issue of high severity.`,
      calls: [{ target: contract, signature: 'upgradeTo(address)', values: [recipient] }],
    }
  },
  compensation: (facts) => {
    const { name, amount, months } = facts
    return {
      title: `Delegate compensation for ${months} months`,
      motivation: `Delegates of ${name} read several proposals a week. Most of them do it without pay, and participation has fallen.`,
      specification: `Up to 20 delegates share ${toMoney(amount)} over ${months} months. A delegate qualifies with:\n\n- a voting rate of at least 80 %\n- a published reason for each vote\n- no conflict of interest without disclosure`,
      calls: [transfer(facts, amount)],
    }
  },
  election: ({ council, name, quarter }) => ({
    title: `${council} election, ${quarter}`,
    motivation: `The term of the ${council} of ${name} ends this quarter. Nominations were open for two weeks.`,
    specification: `Each candidate has published a statement. The three candidates with the most votes are elected for six months; the DAO can remove a member by a simple vote.`,
    calls: [],
  }),
  allocation: ({ name, quarter, amount }) => ({
    title: `Allocation of ecosystem funds, ${quarter}`,
    motivation: `${name} distributes ${toMoney(amount)} to public goods each quarter. Token holders set the shares.`,
    specification: `Funds follow the share of votes. A project below 5 % receives nothing, and its share goes to the others in proportion.`,
    calls: [],
  }),
}

function toBallot(
  subject: Subject,
  { pick, number, amount, council }: Facts,
): Pick<WrittenProposal, 'type' | 'choices'> {
  const isFourth = number % 20 > 9
  if (subject === 'election') {
    const first = pick([0, 1, 2, 3, 4, 5], 16)
    const choices = PEOPLE.slice(first, first + 5 + (number % 3))
    return { type: isFourth ? 'ranked-choice' : 'approval', choices }
  }
  if (subject === 'allocation') {
    const first = pick([0, 2, 4, 6, 8], 17)
    return {
      type: isFourth ? 'weighted' : 'quadratic',
      choices: [...TEAMS.slice(first, first + 6), 'Keep in treasury'],
    }
  }
  if (subject === 'grant' && number % 2 === 1)
    return { type: 'single-choice', choices: [`Fund in full`, `Fund half (${toMoney(amount / 2)})`, 'Do not fund'] }
  if (subject === 'budget' && number % 2 === 1)
    return { type: 'single-choice', choices: ['Approve', `Return to ${council}`, 'Reject', 'Abstain'] }
  return { type: 'basic', choices: ['For', 'Against', 'Abstain'] }
}

const SUMMARIES: readonly ((title: string, facts: Facts) => string)[] = [
  (title, { name }) =>
    `This proposal asks ${name} to decide: ${title}. It follows a discussion of two weeks in the forum.`,
  (title, { team }) =>
    `${title}, as requested by delegates in the last governance call. ${team} wrote this text and answers questions.`,
  (title, { symbol }) => `We ask ${symbol} holders to approve: ${title}. The sections below explain why and how.`,
]
const REASONS = [
  'Comparable DAOs have made the same decision in the past year, with good results.',
  'Doing nothing has a cost as well, and it grows with each quarter.',
  'The temperature check passed with a clear majority, and the comments are included in this version.',
  'Several delegates asked for a smaller first step, which this version takes.',
]
const RISKS = [
  'The work may take longer than planned. Payments follow milestones, so a delay costs time and no money.',
  'A wrong value can be reverted by another vote. Until then the effect is limited by the guardrails above.',
  'Recipients are known teams with published work. Funds that are not used return to the treasury.',
  'Smart contract risk remains after audits. The bounty program covers the changed code from the first day.',
]
const NEXT_STEPS = [
  'If the vote passes, the transaction is queued and can be executed after the timelock. A report follows within 30 days.',
  'If the vote passes, the multisig signs within a week. Progress is posted in the forum each month.',
  'If the vote fails, the authors will revise the text with the reasons given by voters.',
]

function toTimeline({ at, months }: Facts): string {
  return [
    `- **${toDay(at)}**: vote opens`,
    `- **${toDay(at + WEEK)}**: result, then execution`,
    `- **${toDay(at + 5 * WEEK)}**: first report`,
    `- **${toDay(at + months * 30 * 86_400)}**: final report`,
  ].join('\n')
}
