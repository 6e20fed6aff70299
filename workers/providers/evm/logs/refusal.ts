import { TooWide } from './log-pages.ts'

/**
 * Patterns of block limits in refusals: Alchemy "up to a 10 block range", Infura "range 20000 exceeds limit of 10000",
 * QuickNode "eth_getLogs is limited to a 10,000 range", dRPC "ranges over 10000 blocks are not supported", other nodes
 * "max is 1k blocks", "max block range 100000", "maximum is set to 2048", "at most 1024 blocks". Error codes differ by
 * node and do not identify the limit. A limit of results or logs is not a limit of blocks.
 */
const LIMITS = [
  /up to an? ([\d,]+k?) blocks? range/i,
  /range [\d,]+ exceeds limit of ([\d,]+k?)/i,
  /limited to an? ([\d,]+k?) (?:blocks? )?range/i,
  /ranges? over ([\d,]+k?) blocks/i,
  /max is ([\d,]+k?) blocks/i,
  /max(?:imum)? (?:allowed )?(?:block )?range:? (?:is |of )?([\d,]+k?)(?! (?:results|logs))\b/i,
  /too many blocks\b.*?maximum is set to ([\d,]+k?)/i,
  /(?:at most|no more than|limit of|limited to|maximum of) ([\d,]+k?) blocks?\b/i,
  /block range (?:limit|is limited)[^\d]{0,20}?([\d,]+k?)(?! (?:results|logs))\b/i,
]
/** A range that the node would accept if there were too many logs: Alchemy, and Infura "Try with this block range". */
const SUGGESTION = /block range(?: should work:)? \[(0x[0-9a-f]+), ?(0x[0-9a-f]+)\]/i

/** Extracts the accepted page size from a node's refusal. */
export function readRefusal(message: string): TooWide {
  const [limit] = LIMITS.flatMap((pattern) => pattern.exec(message)?.[1] ?? [])
  if (limit !== undefined) return new TooWide({ most: toCount(limit) })
  const [, from, to] = SUGGESTION.exec(message) ?? []
  const width = Number(to) - Number(from) + 1
  return width >= 1 ? new TooWide({ width }) : new TooWide()
}

function toCount(text: string): number {
  const count = Number(text.replaceAll(/[,k]/gi, ''))
  return /k$/i.test(text) ? count * 1000 : count
}
