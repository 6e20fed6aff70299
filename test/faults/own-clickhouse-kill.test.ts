import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ClickHouseLogLevel, createClient } from '@clickhouse/client'
import { expect, it } from 'vitest'
import { findFreePort } from '../../shared/free-port.ts'
import { type OwnClickHouse, startOwnClickHouse } from '../support/own-clickhouse.ts'

const BATCHES_BEFORE_KILL = 150
const ROWS = 100

it('embedded ClickHouse keeps every acknowledged insert through kill -9 and restarts without a delay', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'dao-data-clickhouse-kill-'))
  const connect = ({ url, users: { writer } }: OwnClickHouse) =>
    createClient({ url, username: writer.name, password: writer.password, log: { level: ClickHouseLogLevel.OFF } })
  const port = await findFreePort()
  const first = await startOwnClickHouse({ dataDir, port })
  const writer = connect(first)
  await writer.command({ query: 'CREATE TABLE batches (batch UInt32, row UInt32) ENGINE = MergeTree ORDER BY batch' })

  const acknowledged: number[] = []
  let next = 0
  let killed: Promise<void> | undefined
  const insertUntilKilled = async () => {
    while (killed === undefined) {
      const batch = next++
      const values = Array.from({ length: ROWS }, (_, row) => ({ batch, row }))
      await writer.insert({ table: 'batches', values, format: 'JSONEachRow' })
      acknowledged.push(batch)
      if (acknowledged.length === BATCHES_BEFORE_KILL) killed = first.kill()
    }
  }
  await Promise.allSettled([insertUntilKilled(), insertUntilKilled(), insertUntilKilled()])
  await killed
  await writer.close()
  expect(acknowledged.length).toBeGreaterThanOrEqual(BATCHES_BEFORE_KILL)

  const second = await startOwnClickHouse({ dataDir, port })
  const reader = connect(second)
  const result = await reader.query({
    query: 'SELECT batch, toUInt32(uniqExact(row)) AS rows FROM batches GROUP BY batch',
    format: 'JSONEachRow',
  })
  const stored = new Map((await result.json<{ batch: number; rows: number }>()).map(({ batch, rows }) => [batch, rows]))
  expect(acknowledged.filter((batch) => stored.get(batch) !== ROWS)).toEqual([])
  await reader.close()
  await second.stop()
  await rm(dataDir, { recursive: true, force: true })
})
