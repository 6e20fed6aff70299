/** An account on X. */
export interface Account {
  readonly id: string
  readonly name: string
  readonly username: string
  readonly createdAt: number
  readonly followers: number
  readonly following: number
  readonly posts: number
  readonly listed: number
  /** Whether its posts are counted under the newer of the two member names. */
  readonly newerNames: boolean
}

/** A server on Discord as its invite shows it; counts may be missing. */
export interface DiscordServer {
  readonly id: string
  readonly name: string
  readonly members: number | null
  readonly online: number | null
}

/** The group, channel or person of a name on Telegram. Channels have no count of online members. */
export interface Chat {
  readonly kind: 'group' | 'channel' | 'user'
  readonly title: string
  readonly members: number
  readonly online: number
}

export interface Post {
  readonly id: string
  readonly at: number
  readonly lang: string
  readonly text: string
}

/** The accounts and communities of DAOs. Null for unknown names; names are case-insensitive. */
export interface Socials {
  account(handle: string, now: number): Account | null
  server(inviteCode: string, now: number): DiscordServer | null
  chat(name: string, now: number): Chat | null
  /** Posts of others about an account, before a time, newest first. */
  mentions(handle: string, before: number, most: number): readonly Post[]
}

export const NO_SOCIALS: Socials = {
  account: () => null,
  server: () => null,
  chat: () => null,
  mentions: () => [],
}
