import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'

/** Stops a process until SIGCONT. Returns when every thread has stopped: on a busy machine some run on for a while. */
export async function pauseProcess(pid: number): Promise<void> {
  process.kill(pid, 'SIGSTOP')
  const tasks = `/proc/${pid}/task`
  const isStopped = (task: string): boolean => {
    try {
      return /^State:\s+T/m.test(readFileSync(`${tasks}/${task}/status`, 'utf8'))
    } catch {
      return true // The thread has ended.
    }
  }
  for (let wait = 0; wait < 3_000; wait++) {
    if (readdirSync(tasks).every(isStopped)) return
    await pause(10)
  }
  throw new Error(`process ${pid} did not stop`)
}
