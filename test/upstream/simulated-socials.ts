import type { Dao } from '../../shared/registry/entities.ts'
import { noise, toNoiseKey, unit } from './noise.ts'
import { simulateMentions } from './simulated-posts.ts'
import type { Account, Chat, DiscordServer, Socials } from './socials.ts'
import { DAY } from './world.ts'

const START = Date.UTC(2020, 0, 1)

/** The last part of a link, which is the provider's name for it. */
const toName = (link: string | null) => link?.slice(link.lastIndexOf('/') + 1).toLowerCase()

/**
 * Accounts and communities of the registry's DAOs, with thousands to hundreds of thousands of members. The communities
 * grow unevenly by a few ten-thousandths a day. Some accounts are suspended, some invites expired, some counts hidden,
 * and some names belong to a person.
 */
export function createSimulatedSocials(daos: readonly Dao[], seed: number): Socials {
  const by = (linkOf: (dao: Dao) => string | null) => new Map(daos.map((dao) => [toName(linkOf(dao)), dao]))
  const [accounts, servers, chats] = [by((dao) => dao.twitter), by((dao) => dao.discord), by((dao) => dao.telegram)]
  const keyOf = (dao: Dao, network: string) => toNoiseKey(seed, `${network} ${dao.id}`)
  const find = (of: ReadonlyMap<string | undefined, Dao>, name: string, network: string) => {
    const dao = of.get(name.toLowerCase())
    return dao === undefined ? null : { dao, key: keyOf(dao, network) }
  }
  return {
    account(handle, now) {
      const found = find(accounts, handle, 'account')
      return found === null || unit(found.key, -9) < 0.03 ? null : toAccount(found.dao, found.key, now)
    },
    server(inviteCode, now) {
      const found = find(servers, inviteCode, 'server')
      return found === null || unit(found.key, -9) < 0.05 ? null : toServer(found.dao, found.key, now)
    },
    chat(name, now) {
      const found = find(chats, name, 'chat')
      return found === null || unit(found.key, -9) < 0.05 ? null : toChat(found.dao, found.key, now)
    },
    mentions(handle, before, most) {
      const found = find(accounts, handle, 'mentions')
      return found === null ? [] : simulateMentions(found.key, handle, before, most)
    },
  }
}

/** A number that grows from `first` on, with noise of up to a percent. */
function grow(key: number, first: number, at: number): number {
  const days = (at - START) / DAY
  const perDay = 0.0002 + 0.0008 * unit(key, -2)
  return Math.round(first * Math.exp(perDay * days) * (1 + 0.01 * noise(key, Math.floor(days) / 11)))
}

/** Sizes are spread over two orders of magnitude. */
const toSize = (key: number, least: number) => least * 100 ** unit(key, -1)

/** Eighteen digits, as in ids of servers and accounts. */
const toDigits = (key: number) => String(100_000_000_000_000_000n + BigInt(key) * 10_007n)

function toAccount(dao: Dao, key: number, now: number): Account {
  const followers = grow(key, toSize(key, 3_000), now)
  return {
    id: dao.twitterId ?? toDigits(key),
    name: dao.name,
    username: dao.twitter?.slice(dao.twitter.lastIndexOf('/') + 1) ?? '',
    createdAt: Date.UTC(2017, 0, 1) + Math.floor(unit(key, -3) * 900) * DAY,
    followers,
    following: 50 + Math.floor(unit(key, -4) * 900),
    posts: 800 + Math.floor(((now - START) / DAY) * (1 + 4 * unit(key, -5))),
    listed: Math.floor(followers / 90),
    newerNames: unit(key, -6) < 0.2,
  }
}

function toServer(dao: Dao, key: number, now: number): DiscordServer {
  const members = grow(key, toSize(key, 800), now)
  const online = Math.round(members * (0.08 + 0.1 * unit(key, -3)) * (1 + 0.2 * noise(key ^ 0x0141, now / (3 * DAY))))
  const hidden = unit(key, -4) < 0.04
  return { id: toDigits(key), name: dao.name, members: hidden ? null : members, online: hidden ? null : online }
}

function toChat(dao: Dao, key: number, now: number): Chat {
  const members = grow(key, toSize(key, 600), now)
  const kind = unit(key, -3) < 0.2 ? 'channel' : unit(key, -3) < 0.25 ? 'user' : 'group'
  const online = Math.round(members * 0.03 * (1 + 0.5 * noise(key ^ 0x0141, now / (2 * DAY))))
  return { kind, title: dao.name, members, online }
}
