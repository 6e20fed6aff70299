import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'

const BACKLOG = 1
/** Listens on a port and sends it to the parent. */
const LISTENER = `
  const server = require('node:net').createServer((socket) => socket.end('far'))
  server.listen({ port: 0, host: '127.0.0.1', backlog: ${BACKLOG} }, () => process.send(server.address().port))`

/** A program of this project that connects to a host with two addresses, of which the first accepts connections. */
const toProgram = (port: number) => `
  import { connect } from 'node:net'
  import { runProgram } from ${JSON.stringify(join(import.meta.dirname, '../../shared/process.ts'))}
  runProgram(async () => {
    const addresses = ['127.0.0.1', '127.0.0.2'].map((address) => ({ address, family: 4 }))
    const lookup = (_host, _options, done) => setImmediate(done, null, addresses)
    const socket = connect({ port: ${port}, host: 'far.example', lookup })
    socket.once('connectionAttempt', () => setImmediate(() => process.send('attempt')))
    const end = (how) => process.send(how, () => process.exit())
    socket.on('connect', () => end('connected')).on('error', (error) => end(String(error.code)))
  })`

function start(args: string[]): ChildProcess {
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  return child
}

describe('runProgram', () => {
  it('waits for a host that accepts a connection after its SYN was sent again', async () => {
    const listener = start(['-e', LISTENER])
    const [port] = (await once(listener, 'message')) as [number]
    // The kernel accepts connections up to the backlog and drops further SYN packets.
    listener.kill('SIGSTOP')
    const waiting = Array.from({ length: BACKLOG + 1 }, () => connect(port, '127.0.0.1').on('error', () => {}))
    for (const socket of waiting) onTestFinished(() => void socket.destroy())
    await Promise.all(waiting.map((socket) => once(socket, 'connect')))
    const program = start(['--import', 'tsx', '--input-type=module', '-e', toProgram(port)])
    const messages: unknown[] = []
    program.on('message', (message) => messages.push(message))
    await once(program, 'message')
    listener.kill('SIGCONT')
    await once(program, 'exit')
    expect(messages).toEqual(['attempt', 'connected'])
  })
})
