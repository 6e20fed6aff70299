import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { storeRegistry } from '../../clickhouse/registry.ts'
import { runAlerts } from '../../workers/alerts/main.ts'
import { createAlertStore } from '../../workers/alerts/state.ts'
import { type Receiver, startReceiver, titlesOf, WEBHOOK_SECRET } from '../support/alerts.ts'
import { createTestConfig, createTestDatabase, type TestDatabase } from '../support/database.ts'
import { loadFewDaos } from '../support/few-daos.ts'
import { silent } from '../support/silent.ts'
import { startSmtpReceiver } from '../support/smtp.ts'

const dir = mkdtempSync(join(tmpdir(), 'alerts-command-'))
const file = join(dir, 'alerts.yaml')
let receiver: Receiver
let database: TestDatabase
let config: ReturnType<typeof createTestConfig>
beforeAll(async () => {
  receiver = await startReceiver()
  // No API listens there.
  config = createTestConfig({
    ALERTS_FILE: file,
    ALERTS_PRIVATE_NETWORKS: '127.0.0.0/8',
    ALERTS_API_URL: 'http://127.0.0.1:9',
  })
  database = await createTestDatabase(config)
  await storeRegistry(database.db, loadFewDaos(), silent)
  const channels = `channels:\n  hook: { type: webhook, url: '${receiver.url}', secrets: ['${WEBHOOK_SECRET}'] }\n`
  writeFileSync(file, `${channels}rules:\n  - name: big\n    what: { kind: treasury, movedUsd: 1e6 }\n    to: [hook]\n`)
})
afterAll(async () => {
  await receiver?.close()
  await database?.drop()
  rmSync(dir, { recursive: true, force: true })
})

const run = async (...words: string[]) => runAlerts(config, words)

describe('npm run alerts', () => {
  it('adds, lists, pauses, resumes and removes rules', async () => {
    await run('add', '{name: uni, what: {kind: level, series: price, above: 10}, who: {names: [UNI]}, to: [hook]}')
    await run('pause', 'uni')
    const { json, text } = await run('list')
    expect(json).toMatchObject([
      { rule: 'big', kind: 'treasury', state: 'new', to: ['hook'] },
      { rule: 'uni', kind: 'level', state: 'paused' },
    ])
    expect(text).toMatch(/uni +level +paused/)
    await run('resume', 'uni')
    expect((await run('list')).json).toMatchObject([{}, { rule: 'uni', state: 'new' }])
    await run('remove', 'uni')
    expect((await run('list')).json).toHaveLength(1)
  })

  it('checks names against the registry, and lists unchecked parts', async () => {
    expect(await run('check')).toMatchObject({ json: { mistakes: [], unchecked: [] }, isFailed: false })
    await run('add', '{name: wrong, what: {kind: level, series: price, above: 10}, who: {names: [nothing]}}')
    await run('add', '{name: listed, what: {kind: list, list: /data/tokens, filter: [live=true]}}')
    const { json, isFailed } = await run('check')
    expect(json).toMatchObject({
      mistakes: ['rule wrong: who.names: nothing live matches "nothing"'],
      unchecked: [expect.stringMatching(/^rule listed: ALERTS_API_URL: http:\/\/127\.0\.0\.1:9\/data\/tokens: /)],
    })
    expect(isFailed).toBe(true)
    await run('remove', 'wrong')
    await run('remove', 'listed')
  })

  it('sends a sample to each channel and prints the answer', async () => {
    receiver.reply = () => ({ status: 202, body: 'thanks' })
    expect(await run('test', 'big')).toMatchObject({
      text: 'hook (webhook): delivered, status 202\n  thanks',
      isFailed: false,
    })
    expect(titlesOf(receiver.received)).toEqual(['Test of the rule big'])
    receiver.reply = () => ({ status: 500 })
    expect(await run('test', 'big')).toMatchObject({
      text: 'hook (webhook): not delivered: status 500',
      isFailed: true,
    })
  })

  it('checks a channel for e-mail and sends a sample to it', async () => {
    const smtp = await startSmtpReceiver()
    const before = readFileSync(file, 'utf8')
    const mail = `  mail: { type: email, url: '${smtp.url}', from: alerts@example.org, to: ops@example.org }\n`
    writeFileSync(file, before.replace('rules:\n', `${mail}rules:\n`).replace(/to: \[ ?hook ?\]/, 'to: [mail]'))
    expect(await run('check')).toMatchObject({
      isFailed: false,
      text: expect.stringContaining('2 channels, 0 mistakes'),
    })
    expect(await run('test', 'big')).toMatchObject({
      text: 'mail (email): delivered, status 250\n  250 2.0.0 queued',
      isFailed: false,
    })
    smtp.reply = (command) => (command.startsWith('RCPT') ? '550 5.1.1 no such user' : undefined)
    expect(await run('test', 'big')).toMatchObject({
      text: expect.stringMatching(/^mail \(email\): not delivered: .*550 5\.1\.1 no such user$/),
      isFailed: true,
    })
    writeFileSync(file, before)
    await smtp.close()
    expect(smtp.mails).toEqual([expect.stringContaining('Subject: Test of the rule big')])
  })

  it('prints dead letters and makes them pending again', async () => {
    const store = createAlertStore(database.db)
    await store.writeDeliveries([
      {
        ...{ rule: 'big', channel: 'hook', firing: 'a', message: 'a', dueAt: 0, state: 'dead', attempts: 9 },
        ...{ firstTryAt: 0, nextTryAt: 0, reason: 'status 500', version: 9 },
      },
    ])
    expect((await run('dead')).text).toContain('status 500')
    expect((await run('retry')).json).toEqual({ revived: 1 })
    expect(await store.readPending(Date.now())).toMatchObject([{ message: 'a', attempts: 0, state: 'pending' }])
  })

  it('rejects unknown words with the next step', async () => {
    await expect(run('list', 'more')).rejects.toThrow('list takes no argument')
    await expect(run('pause')).rejects.toThrow('pause takes a rule')
    await expect(run('nothing')).rejects.toThrow(/npm run alerts -- list/)
    await expect(run('test', 'none')).rejects.toThrow('there is no rule "none": big')
  })
})
