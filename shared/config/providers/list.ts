import type { z } from 'zod'
import { coingeckoDeclaration } from './coingecko.ts'
import { coinmarketcapDeclaration } from './coinmarketcap.ts'
import type { AnswerLimits } from './declaration.ts'
import { defillamaDeclaration } from './defillama.ts'
import { discordDeclaration } from './discord.ts'
import { ethplorerDeclaration } from './ethplorer.ts'
import { blockscoutDeclaration, etherscanDeclaration } from './explorers.ts'
import { goldrushDeclaration } from './goldrush.ts'
import { moralisDeclaration } from './moralis.ts'
import { nodesDeclaration } from './nodes.ts'
import { ratingsDeclaration } from './ratings-file.ts'
import { snapshotDeclaration } from './snapshot.ts'
import { telegramDeclaration } from './telegram.ts'
import { xDeclaration } from './x.ts'

/** All providers. Jobs state which of them serve a dataset, and in which order. */
export const declarations = [
  coinmarketcapDeclaration,
  coingeckoDeclaration,
  defillamaDeclaration,
  moralisDeclaration,
  ethplorerDeclaration,
  xDeclaration,
  discordDeclaration,
  telegramDeclaration,
  snapshotDeclaration,
  goldrushDeclaration,
  etherscanDeclaration,
  blockscoutDeclaration,
  ratingsDeclaration,
  nodesDeclaration,
] as const

type Declaration = (typeof declarations)[number]
/** All members of a union of objects, as the spread of the objects has them. */
type Spread<Union> = (Union extends unknown ? (each: Union) => void : never) extends (all: infer All) => void
  ? { [Name in keyof All]: All[Name] }
  : never

const spread = <T extends object>(objects: readonly T[]) => Object.assign({}, ...objects) as Spread<T>

/** The settings of all providers. */
export const providerSettings = spread<Declaration['settings']>(declarations.map(({ settings }) => settings))

/** The parsed settings of all providers, by the name of each host. */
export type ProviderConfigs = Spread<ReturnType<Declaration['toConfig']>>

export const toProviders = (
  settings: z.output<z.ZodObject<typeof providerSettings>>,
  limits: AnswerLimits,
): ProviderConfigs =>
  spread<ReturnType<Declaration['toConfig']>>(declarations.map((each) => each.toConfig(settings, limits)))

/** The settings with which `npm run providers` sends its small requests. */
export function toCheckedProviders(providers: ProviderConfigs): ProviderConfigs {
  const checks = new Map(declarations.flatMap(({ check = {} }) => Object.entries(check)))
  const merged = Object.entries(providers).map(([name, own]) => [name, { ...own, ...checks.get(name) }])
  return Object.fromEntries(merged)
}
