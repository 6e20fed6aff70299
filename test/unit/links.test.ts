import { describe, expect, it } from 'vitest'
import { daoLinkRow } from '../../shared/datasets/daos.ts'
import {
  toChats,
  toFirst,
  toLinkRows,
  toTwitterLink,
  type UnlinkedDao,
} from '../../workers/providers/contracts/links.ts'
import { toTestDao } from '../samples.ts'

const SLOT = Date.parse('2024-05-06T00:00:00Z')
const dao: UnlinkedDao = {
  ...toTestDao(3, null),
  missing: ['website', 'discord', 'image'],
  cmcId: '1',
  coingeckoId: null,
}

describe('links of DAOs', () => {
  it('toChats() recognizes Discord and Telegram by host', () => {
    const discord = 'https://discord.com/invite/abc'
    const telegram = 'https://t.me/channel'
    expect(toChats(['https://gitter.im/x', telegram, discord, 'https://discord.gg/second'])).toEqual({
      discord,
      telegram,
    })
    expect(toChats(['https://discord.gg.evil.example/x', 'not a link', 7, 'https://notdiscord.com/x'])).toEqual({})
  })

  it('toFirst() skips empty elements', () => {
    expect(toFirst(['', null, 'https://a.example/', 'https://b.example/'])).toBe('https://a.example/')
    expect([toFirst([]), toFirst(null), toFirst(undefined)]).toEqual([undefined, undefined, undefined])
  })

  it('toTwitterLink() accepts only handles', () => {
    expect(toTwitterLink('@Uniswap')).toBe('https://twitter.com/Uniswap')
    expect([toTwitterLink('https://x.com/a'), toTwitterLink(''), toTwitterLink(null)]).toEqual([null, null, null])
  })

  it('toLinkRows() returns rows for missing fields with a known link', () => {
    const links = { website: 'https://a.example/', twitter: 'https://twitter.com/a', discord: '', image: undefined }
    const rows = toLinkRows(dao, links, 'defillama', SLOT)
    const row = { dao: 3, field: 'website', source: 'defillama', value: 'https://a.example/' }
    expect(rows).toEqual([{ ...row, observed_at: '2024-05-06T00:00:00.000Z' }])
    expect(daoLinkRow.parse(rows[0])).toEqual(rows[0])
  })

  it.each(['javascript:alert(1)', 'ftp://a.example/', 'data:text/html,a', 'a.example', 'https:', 7])(
    'toLinkRows() ignores %j and returns the other links',
    (website) => {
      const discord = 'https://discord.gg/abc'
      const rows = toLinkRows(dao, { website, discord }, 'coingecko', SLOT)
      expect(rows.map(({ field, value }) => [field, value])).toEqual([['discord', discord]])
    },
  )

  it.each(['ftp://a.example/', 'javascript:alert(1)', 'a.example', ''])('daoLinkRow rejects %j', (value) => {
    const [row] = toLinkRows(dao, { website: 'https://a.example/' }, 'coingecko', SLOT)
    expect(daoLinkRow.safeParse({ ...row, value }).success).toBe(false)
  })
})
