import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import type { Config } from '../../shared/config/config.ts'
import { type Child, startChild, untilReady } from '../../tools/children.ts'
import { toStoreSettings } from '../support/store-settings.ts'

/** Several API processes behind a load balancer, with clients that send requests continuously. */
export interface ApiPool {
  readonly size: number
  /** Stops one process and starts another when the first has exited. */
  renew(index: number): Promise<void>
  /** Starts clients that request the paths repeatedly until the pool is closed. */
  request(paths: readonly string[], clients: number): void
  /** Response counts by status, without those of 503 that a repeated request followed. */
  readonly answers: ReadonlyMap<number, number>
  /** The errors of requests without a response or with an error of the server. */
  readonly failures: readonly string[]
  /** The responses of 503 with `Retry-After`: the client repeated its request after that time. */
  readonly refusals: readonly string[]
  close(): Promise<void>
}

interface Member {
  readonly child: Child
  readonly url: string
  isReady: boolean
}

const CHECK_MS = 100

export async function openApiPool(config: Config, size: number): Promise<ApiPool> {
  const start = () => startMember(config)
  const members = await Promise.all(Array.from({ length: size }, start))
  const clients = createClients(members)
  let isOpen = true
  const checking = checkHealth(members, () => isOpen)
  while (members.some(({ isReady }) => !isReady)) await wait(CHECK_MS)
  return {
    size,
    answers: clients.answers,
    failures: clients.failures,
    refusals: clients.refusals,
    renew: async (index) => {
      await members[index]?.child.stop()
      const member = await start()
      members[index] = member
      while (!member.isReady) await wait(CHECK_MS)
    },
    request: clients.ask,
    close: async () => {
      isOpen = false
      await Promise.all([checking, clients.stop()])
      await Promise.all(members.map(({ child }) => child.stop()))
    },
  }
}

async function startMember(config: Config): Promise<Member> {
  const child = startChild('api', join(import.meta.dirname, '../../api/main.ts'), {
    ...toStoreSettings(config),
    API_PORT: '0',
    API_OPS_PORT: '0',
    API_DRAIN_SECONDS: '5',
    LOG_LEVEL: process.env.FAULTS_LOG_LEVEL ?? 'silent',
  })
  const facts = await untilReady(child)
  return { child, url: String(facts.url), isReady: false }
}

/**
 * The load balancer's health check: a process receives requests while it reports ready. Each place is checked on its
 * own, so that a slow response of one process never delays the news that another one stops.
 */
async function checkHealth(members: readonly Member[], isOpen: () => boolean): Promise<void> {
  const checkRepeatedly = async (place: number) => {
    while (isOpen()) {
      const member = members[place]
      if (member !== undefined) await check(member)
      await wait(CHECK_MS)
    }
  }
  await Promise.all(members.map((_, place) => checkRepeatedly(place)))
}

async function check(member: Member): Promise<void> {
  const response = await fetch(`${member.url}/health/ready`).catch(() => undefined)
  member.isReady = response?.status === 200
  await response?.arrayBuffer()
}

/** Clients of the load balancer, which sends each request to the next ready process. */
function createClients(members: readonly Member[]) {
  const answers = new Map<number, number>()
  const failures: string[] = []
  const refusals: string[] = []
  const running: Promise<void>[] = []
  let isStopped = false
  let turn = 0

  async function requestRepeatedly(paths: readonly string[]): Promise<void> {
    for (let requestCount = 0; !isStopped; requestCount += 1) {
      await requestOne(String(paths[requestCount % paths.length]))
      await wait(5)
    }
  }
  /** Sends a request to the next ready process, and once more after `Retry-After` if that one is busy. */
  async function requestOne(path: string, isRepeated = false): Promise<void> {
    const ready = members.filter(({ isReady }) => isReady)
    turn += 1
    const member = ready[turn % ready.length]
    if (member === undefined) {
      failures.push('no process is ready')
      return await wait(CHECK_MS)
    }
    const address = `${member.url}${path}`
    const since = performance.now()
    try {
      const response = await fetch(address)
      const body = await response.text()
      const seconds = response.headers.get('retry-after')
      if (response.status === 503 && seconds !== null && !isRepeated) {
        refusals.push(`${address}: ${body}`)
        await wait(Number(seconds) * 1000)
        return await requestOne(path, true)
      }
      answers.set(response.status, (answers.get(response.status) ?? 0) + 1)
      if (response.status >= 500) failures.push(`${address}: ${response.status} ${body}`)
    } catch (error) {
      const reason = error instanceof Error ? (error.cause ?? error.message) : error
      failures.push(`${address}: ${reason} after ${Math.round(performance.now() - since)} ms`)
    }
  }
  return {
    answers,
    failures,
    refusals,
    ask: (paths: readonly string[], clients: number) => {
      running.push(...Array.from({ length: clients }, () => requestRepeatedly(paths)))
    },
    stop: async () => {
      isStopped = true
      await Promise.all(running)
    },
  }
}
