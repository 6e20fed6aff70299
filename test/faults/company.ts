import { once } from 'node:events'
import { join } from 'node:path'
import { type Child, startChild, untilReady } from '../../tools/children.ts'

/** Workers and schedulers as processes of their own, which are killed and replaced while a common clock goes on. */
export interface Company {
  readonly names: readonly string[]
  /** Starts whoever does not run. */
  startAll(): Promise<void>
  /** Ends a process as a crash would, whatever it is doing. */
  kill(name: string): Promise<void>
  /** Kills a process and starts another in its place, which may be killed in turn before it is ready. */
  replace(name: string): Promise<void>
  /** Asks a process to stop, and starts another in its place when it has. */
  renew(name: string): Promise<void>
  /** Moves every process's clock to a slot. Workers come first: none may get a slot's job before its clock is there. */
  moveTo(slot: number): Promise<void>
  stop(): Promise<void>
}

export function createCompany(
  names: readonly string[],
  environment: Readonly<Record<string, string>>,
  standIns: Readonly<Record<string, string>>,
): Company {
  const running = new Map<string, Member>()
  const slots: Record<Role, number> = { worker: 0, scheduler: 0 }

  async function start(name: string): Promise<void> {
    // Somebody else may have replaced it at the same time: a second process under one name would never hear of the clock.
    if (running.has(name)) return
    const role = toRole(name)
    const child = startChild(name, join(import.meta.dirname, 'part.ts'), environment, [role, JSON.stringify(standIns)])
    const member: Member = { role, child, ended: once(child.process, 'exit'), isJoined: false, onSlot: () => {} }
    running.set(name, member)
    child.process.on('message', (message: { slot?: number }) => {
      if (message.slot !== undefined) return member.onSlot(message.slot)
      member.isJoined = true
      child.process.send({ slot: slots[role] })
    })
    try {
      await untilReady(child)
    } catch (error) {
      // It may be killed before it is ready.
      if (child.process.signalCode !== 'SIGKILL') throw error
    }
  }
  async function kill(name: string): Promise<void> {
    const member = running.get(name)
    if (member === undefined) return
    running.delete(name)
    member.child.process.kill('SIGKILL')
    await member.ended
  }
  async function moveAll(role: Role, slot: number): Promise<void> {
    slots[role] = slot
    const members = [...running.values()].filter((member) => member.isJoined && member.role === role)
    await Promise.all(members.map((member) => move(member, slot)))
  }
  return {
    names,
    startAll: async () => void (await Promise.all(names.filter((name) => !running.has(name)).map(start))),
    kill,
    replace: async (name) => {
      await kill(name)
      await start(name)
    },
    renew: async (name) => {
      await running.get(name)?.child.stop()
      running.delete(name)
      await start(name)
    },
    moveTo: async (slot) => {
      await moveAll('worker', slot)
      await moveAll('scheduler', slot)
    },
    stop: async () => void (await Promise.all(names.map(kill))),
  }
}

type Role = 'worker' | 'scheduler'

const toRole = (name: string) => (name.startsWith('worker') ? 'worker' : 'scheduler')

interface Member {
  readonly role: Role
  readonly child: Child
  readonly ended: Promise<unknown>
  /** Whether it goes by the clock: before, it takes no jobs. */
  isJoined: boolean
  /** Called when it says which slot it goes by. */
  onSlot(slot: number): void
}

/** Resolves when a process goes by the slot, or has ended. */
async function move(member: Member, slot: number): Promise<void> {
  const moved = new Promise<void>((resolve) => {
    member.onSlot = (reached) => reached === slot && resolve()
  })
  // Between a kill and its end a process has a channel that takes nothing any more.
  member.child.process.send({ slot }, () => undefined)
  await Promise.race([moved, member.ended])
}
