import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createRedis } from '../../shared/queue/redis.ts'
import { silent } from '../support/silent.ts'

const [OK, INFO] = ['+OK\r\n', '$11\r\nrole:master\r\n']
const READ_ONLY = "READONLY You can't write against a read only replica."

/** A server that responds to `SET` with an error on its first connection and with OK on the next. */
async function startDemotedNode(refusal: string) {
  const sockets: Socket[] = []
  const server = createServer((socket) => {
    sockets.push(socket)
    const isDemoted = sockets.length === 1
    socket.setEncoding('utf8').on('data', (text) => {
      for (const command of String(text).split(/(?=^\*)/m)) {
        const name = command.split('\r\n')[2]?.toLowerCase()
        const written = isDemoted ? `-${refusal}\r\n` : OK
        socket.write(name === 'info' ? INFO : name === 'set' ? written : OK)
      }
    })
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return { url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}`, sockets }
}

describe('createRedis', () => {
  it.each(['commands', 'blocking', 'reader', 'counter'] as const)(
    'reconnects for %s if the node has become a replica',
    async (use) => {
      const node = await startDemotedNode(READ_ONLY)
      const redis = createRedis(node.url, silent, use)
      onTestFinished(() => redis.disconnect())
      await once(redis, 'ready')
      await expect(redis.set('key', 'value')).rejects.toThrow('READONLY')
      await once(redis, 'ready')
      expect(await redis.set('key', 'value')).toBe('OK')
      expect(node.sockets).toHaveLength(2)
    },
  )

  it.each([
    ['loads its data set', 'LOADING Redis is loading the dataset in memory'],
    ['has lost its master', "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."],
    ['refuses a write inside a script', `ERR Error running script (call to f_1): @user_script:1: -${READ_ONLY}`],
  ])('reconnects if the node %s', async (_what, refusal) => {
    const node = await startDemotedNode(refusal)
    const redis = createRedis(node.url, silent)
    onTestFinished(() => redis.disconnect())
    await expect(redis.set('key', 'value')).rejects.toThrow(refusal)
    expect(await redis.set('key', 'value')).toBe('OK')
    expect(node.sockets).toHaveLength(2)
  })

  it('keeps its connection after an invalid command', async () => {
    const node = await startDemotedNode('WRONGTYPE Operation against a key holding the wrong kind of value')
    const redis = createRedis(node.url, silent)
    onTestFinished(() => redis.disconnect())
    await expect(redis.set('key', 'value')).rejects.toThrow('WRONGTYPE')
    await expect(redis.set('key', 'value')).rejects.toThrow('WRONGTYPE')
    expect(node.sockets).toHaveLength(1)
  })
})
