import type { DaoLinkRow, LinkSource } from '../../../shared/datasets/daos.ts'
import type { Dao } from '../../../shared/registry/entities.ts'
import type { LinkField } from '../../../shared/registry/found-links.ts'
import type { Candidate, Entity, Peers, Run } from '../../job/define-job.ts'
import { toIso } from '../answer.ts'

/** A DAO with links that the registry does not know, and the ids under which sources know its token. */
export type UnlinkedDao = Dao & {
  readonly missing: readonly LinkField[]
  readonly cmcId: string | null
  readonly coingeckoId: string | null
}

/** A source of links and logos. */
export interface DaoLinksSource {
  /** What the source says of the missing links, as of the slot; nothing of DAOs that it does not know. */
  fetchLinks(
    daos: readonly UnlinkedDao[],
    run: Pick<Run<unknown, UnlinkedDao>, 'slot' | 'signal' | 'refuse' | 'putOff' | 'log' | 'state' | 'providerName'> & {
      readonly peers: Peers<Entity>
    },
  ): Promise<Candidate<DaoLinkRow>[]>
}

/** What a source says of one DAO; empty texts are how sources say that they know nothing. */
export type Links = Readonly<Partial<Record<LinkField, unknown>>>

/** A row for each missing link that the source has a word for. What is no link of the web is no word: its text stays so. */
export function toLinkRows(dao: UnlinkedDao, links: Links, source: LinkSource, slot: number): Candidate<DaoLinkRow>[] {
  return dao.missing.flatMap((field) => {
    const value = links[field]
    const isLink = typeof value === 'string' && /^https?:/.test(value) && URL.canParse(value)
    return isLink ? [{ dao: dao.key, field, source, value, observed_at: toIso(slot) }] : []
  })
}

const DISCORD = /^(?:www\.)?(?:discord\.(?:gg|com)|discordapp\.com)$/
const TELEGRAM = /^(?:www\.)?(?:t|telegram)\.me$/

/** Chat links by what their host is; the first of each. */
export function toChats(links: readonly unknown[]): Pick<Links, 'discord' | 'telegram'> {
  const hosted = links.flatMap((link) => {
    return typeof link === 'string' && URL.canParse(link) ? [{ link, host: new URL(link).hostname }] : []
  })
  return {
    discord: hosted.find(({ host }) => DISCORD.test(host))?.link,
    telegram: hosted.find(({ host }) => TELEGRAM.test(host))?.link,
  }
}

/** The first link of a list that is more than an empty place. */
export function toFirst(links: readonly unknown[] | null | undefined): unknown {
  return links?.find((link) => link !== '' && link !== null)
}

const HANDLE = /^@?([A-Za-z0-9_]{1,15})$/

/** A Twitter handle as a link; null for what is no handle. */
export function toTwitterLink(handle: unknown): string | null {
  const [, name] = typeof handle === 'string' ? (HANDLE.exec(handle) ?? []) : []
  return name === undefined ? null : `https://twitter.com/${name}`
}
