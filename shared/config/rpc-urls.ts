import { z } from 'zod'
import { readRegistryFile } from '../registry/registry-file.ts'
import { KINDS, SHIPPED } from '../registry/source.ts'

/** The slugs of the registry's EVM chains. Empty if the file has mistakes; loading the registry reports them. */
function toEvmChains(): ReadonlySet<string> {
  const { records } = readRegistryFile(SHIPPED, 'chains.json', KINDS.chains, [])
  return new Set(records.flatMap(({ record }) => (record.evm ? [record.slug] : [])))
}

/**
 * A setting like `ethereum=https://host/key,base=https://host`: the JSON-RPC node of each chain, by the chain's slug.
 * Messages never repeat a URL, because it may contain a key.
 */
export const chainUrls = z.string().transform((text, context): Readonly<Record<string, string>> => {
  const urls: Record<string, string> = {}
  const parts = text.split(',').map((part) => part.trim())
  const entries = parts.filter((part) => part !== '')
  const chains = entries.length === 0 ? new Set<string>() : toEvmChains()
  for (const part of entries) {
    const [, chain, url] = /^([a-z0-9-]+)=(.*)$/.exec(part) ?? []
    const mistake = toMistake(chain, url, chains, urls)
    if (mistake !== undefined) context.addIssue({ code: 'custom', message: mistake })
    else if (chain !== undefined && url !== undefined) urls[chain] = url
  }
  return urls
})

function toMistake(
  chain: string | undefined,
  url: string | undefined,
  chains: ReadonlySet<string>,
  urls: Readonly<Record<string, string>>,
): string | undefined {
  if (chain === undefined || url === undefined) return 'must be <chain>=<url>, several separated by commas'
  if (!chains.has(chain)) return `no EVM chain has the slug ${chain}; there are ${[...chains].join(', ')}`
  if (chain in urls) return `${chain} has two URLs`
  if (!/^https?:\/\//.test(url) || !URL.canParse(url)) return `the URL of ${chain} must be an http or https URL`
  return undefined
}
