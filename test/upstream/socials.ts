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
  /** Whether its posts are counted under the newer of the two names that there are for them. */
  readonly newerNames: boolean
}

/** A server on Discord as its invite shows it; counts may be left out. */
export interface DiscordServer {
  readonly id: string
  readonly name: string
  readonly members: number | null
  readonly online: number | null
}

/** What a name on Telegram belongs to; nobody sees who of a channel is online. */
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

/** What the world knows about DAOs' accounts and communities. Null for names that nobody has; names in any case. */
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
