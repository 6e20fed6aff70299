import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { holdersHistoricRoute } from '../../api/routes/tokens/holders/historic.ts'
import { holderLabelsHistoricRoute } from '../../api/routes/tokens/holders/historic-labels.ts'
import { type HoldersRecord, holdersRoute } from '../../api/routes/tokens/holders.ts'
import holders from '../../workers/jobs/holders.ts'
import { getDao } from '../support/entities.ts'
import { toPendingReport } from '../support/pending-report.ts'
import { createServedPipeline, type ServedPipeline } from '../support/served-pipeline.ts'

const dataDir = process.env.UPSTREAM_DATA_DIR || join(import.meta.dirname, '../../../shared/data')
const recording = join(dataDir, 'fixtures-ethplorer-openbb/uni_getTopTokenHolders_getTokenInfo_2022-01-31.json')
const recorded = readRecording()
if (recorded === undefined) console.log(`no recorded holders at ${recording}: their test is skipped`)

function readRecording() {
  try {
    const [list, info] = JSON.parse(readFileSync(recording, 'utf8'))
    const holders: { address: string; balance: number; share: number }[] = list.response.body.holders
    return { body: list.response.body, holders, info: info.response.body }
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}

describe.skipIf(recorded === undefined)('recorded holders of UNI', () => {
  let pipeline: ServedPipeline
  beforeAll(async () => {
    pipeline = await createServedPipeline({ now: Date.parse('2024-05-06T07:01:00Z'), dataDir })
  })
  afterAll(() => pipeline?.close())

  it('are served as they were recorded', async () => {
    if (recorded === undefined) return
    const uni = pipeline.tokenOf('UNI')
    const target = `${pipeline.upstream.url}/ethplorer/getTopTokenHolders/${uni.contractAddress}?apiKey=freekey&limit=100`
    expect(await (await fetch(target)).json()).toEqual(recorded.body)

    pipeline.upstream.faults.set('moralis', { kind: 'status', status: 401 })
    expect(await pipeline.collect(holders).catch(toPendingReport)).toMatchObject({ rows: 1, providers: ['ethplorer'] })
    const response = await fetch(`${pipeline.url}/data/tokens/holders`)
    const [record, ...rest] = holdersRoute.response.parse(await response.json()) as HoldersRecord[]
    expect(rest).toEqual([])
    const { totalHolders, top100Share, topHolders } = record?.holdersData ?? { topHolders: [] }
    expect(totalHolders).toBe(300_232)
    expect(topHolders.map(({ address }) => address)).toEqual(recorded.holders.map(({ address }) => address))
    expect(topHolders.map(({ share }) => share)).toEqual(recorded.holders.map(({ share }) => share))
    const cents = recorded.holders.reduce((sum, { share }) => sum + Math.round(share * 100), 0)
    expect(top100Share).toBe(cents / 100)
    for (const [index, { balance }] of recorded.holders.entries()) {
      const digits = toDigits(balance)
      const amount = Number(`${digits.slice(0, -18)}.${digits.slice(-18)}`)
      expect(topHolders[index]?.amount).toBe(amount)
      expect(topHolders[index]?.amountUsd).toBe(amount * recorded.info.price.rate)
    }
    expect(topHolders[0]?.amount).toBe(173403155.2047184)
    const top10 = recorded.holders.slice(0, 10).reduce((sum, { share }) => sum + Math.round(share * 100), 0)
    const treasuries = getDao(pipeline.registry, 'uniswap').treasuries.map(({ address }) => address)
    const sumOf = (owners: readonly string[]) =>
      recorded.holders
        .filter(({ address }) => owners.includes(address))
        .reduce((sum, { share }) => sum + Math.round(share * 100), 0) / 100
    expect(sumOf(treasuries)).toBeGreaterThan(0)
    const historyOf = async ({ path }: { path: string }) =>
      (await fetch(`${pipeline.url}${path}?id=${uni.id}`)).json() as Promise<unknown>
    const recordedAt = '2024-05-06T00:00:00.000Z'
    expect(await historyOf(holdersHistoricRoute)).toEqual([
      { recordedAt, totalHolders, top10Share: top10 / 100, top100Share },
    ])
    expect(await historyOf(holderLabelsHistoricRoute)).toEqual([
      { recordedAt, treasuryShare: sumOf(treasuries), contractShare: sumOf([uni.contractAddress]), burnShare: 0 },
    ])
  })
})

/** The float's own digits, followed by zeros: 1.25e+3 is 1250. */
function toDigits(value: number): string {
  const [mantissa = '', exponent = '0'] = value.toExponential().split('e')
  const [full = '', fraction = ''] = mantissa.split('.')
  return full + fraction.padEnd(Number(exponent), '0')
}
