import { once } from 'node:events'
import { join } from 'node:path'
import { type Child, startChild, untilReady } from '../../tools/children.ts'

/** Workers and schedulers as separate processes, which are killed and replaced while a shared clock advances. */
export interface Company {
  readonly names: readonly string[]
  /** Starts every process that does not run. */
  startAll(): Promise<void>
  /** Ends a process like a crash, regardless of its current work. */
  kill(name: string): Promise<void>
  /** Kills a process and starts a replacement, which may be killed before it is ready. */
  replace(name: string): Promise<void>
  /** Stops a process, and starts a replacement when it has exited. */
  renew(name: string): Promise<void>
  /**
   * Moves the clock of every process to a slot. Workers move first: none may receive a job of the slot before its clock is
   * there.
   */
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
    // A concurrent call may have replaced it: a second process under one name would never receive the clock.
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
      // The process may be killed before it is ready.
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
  /** Whether the process follows the clock: before that it takes no jobs. */
  isJoined: boolean
  /** Called when the process reports its current slot. */
  onSlot(slot: number): void
}

/** Resolves when the process has moved to the slot, or has exited. */
async function move(member: Member, slot: number): Promise<void> {
  const moved = new Promise<void>((resolve) => {
    member.onSlot = (reached) => reached === slot && resolve()
  })
  // Between a kill and its exit, a process's channel rejects messages.
  member.child.process.send({ slot }, () => undefined)
  await Promise.race([moved, member.ended])
}
