import type { DaoLinkRow, LinkSource } from '../../../shared/datasets/daos.ts'
import type { Dao } from '../../../shared/registry/entities.ts'
import type { LinkField } from '../../../shared/registry/found-links.ts'
import type { Candidate, Entity, Peers, Run } from '../../job/define-job.ts'
import { toIso } from '../answer.ts'

/** A DAO with links that the registry lacks, and the ids of its token at the sources. */
export type UnlinkedDao = Dao & {
  readonly missing: readonly LinkField[]
  readonly cmcId: string | null
  readonly coingeckoId: string | null
}

/** A source of links and logos. */
export interface DaoLinksSource {
  /** Fetches the missing links as of the slot. DAOs that the source does not know are absent. */
  fetchLinks(
    daos: readonly UnlinkedDao[],
    run: Pick<Run<unknown, UnlinkedDao>, 'slot' | 'signal' | 'refuse' | 'putOff' | 'log' | 'state' | 'providerName'> & {
      readonly peers: Peers<Entity>
    },
  ): Promise<Candidate<DaoLinkRow>[]>
}

/** Links of one DAO in a source. Sources use empty texts for unknown values. */
export type Links = Readonly<Partial<Record<LinkField, unknown>>>

/** Returns a row for each missing link that the source has as an http(s) URL. Other texts are ignored. */
export function toLinkRows(dao: UnlinkedDao, links: Links, source: LinkSource, slot: number): Candidate<DaoLinkRow>[] {
  return dao.missing.flatMap((field) => {
    const value = links[field]
    const isLink = typeof value === 'string' && /^https?:/.test(value) && URL.canParse(value)
    return isLink ? [{ dao: dao.key, field, source, value, observed_at: toIso(slot) }] : []
  })
}

const DISCORD = /^(?:www\.)?(?:discord\.(?:gg|com)|discordapp\.com)$/
const TELEGRAM = /^(?:www\.)?(?:t|telegram)\.me$/

/** Finds the first Discord and the first Telegram link by host name. */
export function toChats(links: readonly unknown[]): Pick<Links, 'discord' | 'telegram'> {
  const hosted = links.flatMap((link) => {
    return typeof link === 'string' && URL.canParse(link) ? [{ link, host: new URL(link).hostname }] : []
  })
  return {
    discord: hosted.find(({ host }) => DISCORD.test(host))?.link,
    telegram: hosted.find(({ host }) => TELEGRAM.test(host))?.link,
  }
}

/** Returns the first link of a list that is not empty. */
export function toFirst(links: readonly unknown[] | null | undefined): unknown {
  return links?.find((link) => link !== '' && link !== null)
}

const HANDLE = /^@?([A-Za-z0-9_]{1,15})$/

/** Converts a Twitter handle to a link; null if it is not a valid handle. */
export function toTwitterLink(handle: unknown): string | null {
  const [, name] = typeof handle === 'string' ? (HANDLE.exec(handle) ?? []) : []
  return name === undefined ? null : `https://twitter.com/${name}`
}
