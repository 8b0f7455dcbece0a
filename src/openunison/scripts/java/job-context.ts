import { HashMap } from './hash-map.ts'
import { optionalText } from './java-value.ts'

/** org.quartz.JobDataMap: the parameters of the job, as texts. */
export class JobDataMap extends HashMap {
  getString(name: unknown): string | null {
    return optionalText(this.get(name))
  }
}

/** org.quartz.JobDetail. */
export class JobDetail {
  readonly #data: JobDataMap

  constructor(data: JobDataMap) {
    this.#data = data
  }

  getJobDataMap(): JobDataMap {
    return this.#data
  }
}

/** org.quartz.JobExecutionContext: one run of a scheduled job. */
export class JobExecutionContext {
  readonly #detail: JobDetail

  constructor(params: Readonly<Record<string, unknown>>) {
    this.#detail = new JobDetail(new JobDataMap(params))
  }

  getJobDetail(): JobDetail {
    return this.#detail
  }
}
