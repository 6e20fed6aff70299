import { expect, it } from 'vitest'
import { DataError } from '../../shared/errors.ts'
import treasury from '../../workers/jobs/treasury.ts'
import type { TreasuryDao } from '../../workers/providers/contracts/treasury-daos.ts'
import { defillamaTreasury } from '../../workers/providers/defillama/treasury.ts'
import { goldrush } from '../../workers/providers/goldrush/treasury.ts'
import { sendJson } from '../provider-server.ts'
import { alfa, connectTreasury, TODAY, wallet } from '../support/treasury-provider.ts'

const { signal } = new AbortController()

it('treasury job uses each provider for the DAOs with its ids', async () => {
  const { context } = await connectTreasury(goldrush, (_, response) => sendJson(response, {}))
  const collectors = treasury.connect(context)
  const covering = (dao: TreasuryDao) => collectors.filter(({ covers }) => covers(dao)).map(({ provider }) => provider)
  expect(covering(alfa)).toEqual(['goldrush', 'defillama'])
  expect(covering({ ...alfa, defillama: null })).toEqual(['goldrush'])
  expect(covering({ ...alfa, wallets: [] })).toEqual(['defillama'])
  // An address that cannot be requested would make a partial sum look complete.
  expect(covering({ ...alfa, defillama: null, wallets: [wallet(1), wallet(2, null)] })).toEqual([])
  const source = defillamaTreasury.connect(context)
  await expect(source.fetchTreasury({ ...alfa, defillama: null }, TODAY, signal)).rejects.toBeInstanceOf(DataError)
})
