import { decodeEventLog, encodeAbiParameters, encodeEventTopics, parseAbiItem } from 'viem/utils'
import { expect, it } from 'vitest'
import { createEventDecoder } from '../../workers/providers/evm/logs/events.ts'

const VOTE = parseAbiItem(
  'event VoteCast(address indexed voter, uint256 id, uint8 support, uint256 weight, string reason)',
)
const SWAP = parseAbiItem('event Swap(address indexed sender, uint256 amountIn, int256 amountOut, address indexed to)')
const [ONE, SECOND] = [
  '0x00000000000000000000000000000000000000a1',
  '0x00000000000000000000000000000000000000b2',
] as const

const vote = {
  topics: encodeEventTopics({ abi: [VOTE], args: { voter: ONE } }) as [`0x${string}`],
  data: encodeAbiParameters(
    VOTE.inputs.filter((one) => !('indexed' in one)),
    [7n, 1, 5_000n, 'a reason longer than one word of thirty-two bytes'],
  ),
}
const swap = {
  topics: encodeEventTopics({ abi: [SWAP], args: { sender: ONE, to: SECOND } }) as [`0x${string}`],
  data: encodeAbiParameters([{ type: 'uint256' }, { type: 'int256' }], [3n, -4n]),
}
const decoder = createEventDecoder([VOTE, SWAP])

it.each([
  ['a vote', vote],
  ['a swap', swap],
])('createEventDecoder decodes %s like viem', (_what, log) => {
  expect(decoder.decode(log)).toEqual(decodeEventLog({ abi: [VOTE, SWAP], ...log }))
})

it('createEventDecoder returns undefined for another event, missing topics or truncated data', () => {
  const { topics, data } = swap
  expect(decoder.decode({ topics: [`0x${'1'.repeat(64)}`, ...topics.slice(1)], data })).toBeUndefined()
  expect(decoder.decode({ topics: topics.slice(0, 2), data })).toBeUndefined()
  expect(decoder.decode({ topics, data: data.slice(0, -64) })).toBeUndefined()
})

it.each([
  [
    'more topics than any version',
    { ...vote, topics: [...vote.topics, `0x${'0'.repeat(64)}`] },
    'known versions have 2',
  ],
  ['fewer topics', { ...vote, topics: vote.topics.slice(0, 1) }, 'VoteCast has 1 topics'],
  ['cut data', { ...vote, data: vote.data.slice(0, 130) }, 'the data of VoteCast'],
  [
    'a number beyond its type',
    { ...vote, data: `${vote.data.slice(0, 66)}${'f'.repeat(64)}${vote.data.slice(130)}` },
    'the data of VoteCast',
  ],
])('createEventDecoder explains a log of a known event with %s', (_what, log, reason) => {
  expect(decoder.decode(log)).toBeUndefined()
  expect(decoder.faultOf(log)).toContain(reason)
})

it('createEventDecoder has no fault of a readable log or of another event', () => {
  expect([decoder.faultOf(vote), decoder.faultOf({ topics: [], data: '0x' })]).toEqual([undefined, undefined])
  expect(decoder.faultOf({ ...vote, topics: [`0x${'1'.repeat(64)}`] })).toBeUndefined()
})

it.each([
  ['has members without names', 'event Sold(address indexed, uint256 price)'],
  ['has the hash of a text as a topic', 'event Sold(string indexed name, uint256 price)'],
  ['has the hash of a list as a topic', 'event Sold(uint256[] indexed ids, uint256 price)'],
])('createEventDecoder rejects an event that %s', (_what, signature) => {
  const event = parseAbiItem([signature]) as typeof VOTE
  expect(() => createEventDecoder([event])).toThrow('Sold')
})
