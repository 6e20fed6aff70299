import { describe, expect, it } from 'vitest'
import { type OwnedGovernor, toRows } from '../../workers/providers/evm/governors/rows.ts'

const SPACE = `eip155:1:0x${'1'.repeat(40)}`
const GOVERNOR: OwnedGovernor = {
  ...{ dao: 1, chain: 'ethereum', address: `0x${'1'.repeat(40)}`, fromBlock: 0 },
  ...{ space: SPACE, proposalSpace: SPACE, family: 'bravo' as const, decimals: 18 },
}
const LOG = {
  ...{ address: GOVERNOR.address, topics: [], data: '0x', blockNumber: 1, logIndex: 0 },
  ...{ transactionHash: `0x${'2'.repeat(64)}`, blockTimestamp: 1_700_000_000, removed: false },
}

const REST = { period: { start: 1n, end: 2n }, actions: [] }

function titleOf(description: string): unknown {
  const event = { kind: 'created', id: 1n, proposer: `0x${'3'.repeat(40)}`, description, ...REST } as const
  const [row] = toRows([{ governor: GOVERNOR, event, log: LOG, time: 1_700_000_000 }])
  return row !== undefined && 'title' in row ? row.title : undefined
}

describe('title of a proposal', () => {
  it.each([
    ['', ''],
    ['\n \n', ''],
    ['###', ''],
    ['Raise the cap', 'Raise the cap'],
    ['# Raise the cap\n## Why', 'Raise the cap'],
    ['\r\n  ## Raise the #1 cap ##  \r\nWhy', 'Raise the #1 cap'],
    ['#\nRaise the cap', 'Raise the cap'],
    ['Raise\u2028the cap', 'Raise'],
    ['# Upgrade fee tiers\\n\\n## Summary\\nThe tiers', 'Upgrade fee tiers'],
    ['# Upgrade fee tiers\\r\\n\\r\\n## Summary', 'Upgrade fee tiers'],
    ['Upgrade fee tiers\\nthe tiers change\\nsoon', 'Upgrade fee tiers'],
    ['# Upgrade fee tiers\\n\\n## Summary\nThe tiers', 'Upgrade fee tiers'],
    ['Electric Boogaloo \\n\\n JK', 'Electric Boogaloo'],
    ['Move C:\\new to C:\\old', 'Move C:\\new to C:\\old'],
    ['# Raise the cap\r\r\n\u0085Why', 'Raise the cap'],
    ['\v\f\u200b\n\ufeff# Raise the cap', 'Raise the cap'],
    ['#Raise the cap', 'Raise the cap'],
    ['> # Raise the cap', 'Raise the cap'],
    ['<h1>Raise the cap</h1><p>Why</p>', 'Raise the cap'],
    ['<h1 align="center">Raise <b>the</b> cap</h1>\nWhy', 'Raise the cap'],
    ['<p></p>\n<p>Raise the cap &amp; more<br/>Why', 'Raise the cap & more'],
    ['Raise the cap of <AAVE> if a < b', 'Raise the cap of <AAVE> if a < b'],
    ['"# Raise the cap\\n\\nWhy \\"now\\""', 'Raise the cap'],
    ['"# Raise the cap\n\nWhy"', 'Raise the cap'],
    ['""', ''],
    ['"Cap" and "floor"', '"Cap" and "floor"'],
    ['{"title":"# Raise\\nthe cap","description":"Why"}', 'Raise the cap'],
    ['{"description":"Why"}', '{"description":"Why"}'],
    ['{cap} is raised', '{cap} is raised'],
    ['---\ntitle: Raise the cap\nauthor: me\n---\n# Other', 'Raise the cap'],
    ['---\n\nRaise the cap\n---', 'Raise the cap'],
    ['![](https://one.example/a.png)\n# Raise the cap', 'Raise the cap'],
    ['# **Raise the cap**', 'Raise the cap'],
    ['**Cap** and **floor**', '**Cap** and **floor**'],
    ['Raise the cap\n=====\nWhy', 'Raise the cap'],
  ])('is extracted from %j as %j', (description, title) => {
    expect(titleOf(description)).toBe(title)
  })

  it.each(['x', '𝔘'])('has at most 256 characters, like on Snapshot: %s', (character) => {
    expect(titleOf(character.repeat(256))).toBe(character.repeat(256))
    expect(titleOf(character.repeat(257))).toBe(`${character.repeat(255)}…`)
    expect(titleOf(`x${character.repeat(100_000)}`)).toBe(`x${character.repeat(254)}…`)
  })

  const LONG = 50_000
  it.each([
    ['spaces', ' '],
    ['number signs', '#'],
    ['both', ' #'],
  ])('is extracted in linear time from a text of %s', (_, filler) => {
    const middle = filler.repeat(LONG)
    expect(titleOf(`a${middle}b`)).toBe(`${`a${middle}`.slice(0, 255).trimEnd()}…`)
    expect(titleOf(`${middle}\n${'\n'.repeat(LONG)}a`)).toBe('a')
  })

  it.each([
    ...[
      ...'" "< <a &'.split(' '),
      '<br',
      '<br ',
      '</p ',
      '\\n',
      '\\r',
      '\\n\\r',
      '{"title":',
      '---\n',
      '![](',
      '![]',
      '**',
      '~',
    ],
    ...['\u200b', '\ufeff\n', '<a ', '> ', '"\n', '&#', '\v'],
  ])('is extracted in linear time from a text of %j', (filler) => {
    for (const text of [filler.repeat(4 * LONG), `# ${filler.repeat(4 * LONG)}`, `"${filler.repeat(4 * LONG)}"`])
      expect([...String(titleOf(text))].length).toBeLessThanOrEqual(256)
  })
})
