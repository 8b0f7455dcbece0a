import { PgBoss } from 'pg-boss'

const queue = 'bench'
const senders = 16
const workers = 2
const batchSize = 100

/** The rate of the queue itself: jobs that are sent one by one, fetched in batches and completed, per second. */
export async function bareJobs(connectionString: string, count: number): Promise<number> {
  const boss = new PgBoss({ connectionString, schema: 'bench_boss', schedule: false, max: senders + workers })
  boss.on('error', () => {})
  await boss.start()
  try {
    await boss.createQueue(queue)
    let sent = 0
    let handled = 0
    const send = async (): Promise<void> => {
      while (sent++ < count) await boss.send(queue, { id: sent })
    }
    const work = async (): Promise<void> => {
      while (handled < count) {
        const jobs = await boss.fetch(queue, { batchSize })
        if (jobs.length === 0) continue
        const ids = jobs.map(({ id }) => id)
        await boss.complete(queue, ids)
        handled += jobs.length
      }
    }
    const started = performance.now()
    await Promise.all([...Array.from({ length: senders }, send), ...Array.from({ length: workers }, work)])
    return count / ((performance.now() - started) / 1000)
  } finally {
    await boss.stop({ graceful: true, close: true })
  }
}
