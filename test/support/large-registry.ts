import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadRegistry, type Registry } from '../../shared/registry/registry.ts'

const SHIPPED = join(import.meta.dirname, '../../shared/registry')
const FILES = ['categories.json', 'chains.json', 'daos.json', 'index.json', 'tokens.json']

/** A registry out of files like any: the shipped one with so many more live tokens, which market-data providers know. */
export function loadLargeRegistry(more: number): Registry {
  const dir = mkdtempSync(join(tmpdir(), 'large-registry-'))
  try {
    for (const file of FILES) cpSync(join(SHIPPED, file), join(dir, file))
    const tokens: { dao: string }[] = JSON.parse(readFileSync(join(dir, 'tokens.json'), 'utf8'))
    const shipped = tokens.map((token) => (token.dao === DAO ? { ...token, primary: true } : token))
    const added = Array.from({ length: more }, (_, index) => toToken(index))
    writeFileSync(join(dir, 'tokens.json'), JSON.stringify([...shipped, ...added]))
    return loadRegistry(dir)
  } finally {
    rmSync(dir, { recursive: true })
  }
}

/** Whose tokens they are; it has one of its own. */
const DAO = 'uniswap'
/** Ids beyond all that the provider has given. */
const FIRST_CMC_ID = 1_000_000

function toToken(index: number) {
  return {
    symbol: `MADE${index}`,
    name: `Made up ${index}`,
    chain: 'ethereum',
    contractAddress: `0x${index.toString(16).padStart(40, '0')}`,
    decimals: 18,
    dao: DAO,
    cmcId: String(FIRST_CMC_ID + index),
    coingeckoId: `made-up-${index}`,
    live: true,
  }
}
