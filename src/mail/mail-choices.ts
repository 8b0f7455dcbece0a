import type { Configuration } from '#config/configuration/configuration.ts'
import type { Identity } from '#identity/identity.ts'
import { mailTime, type NotificationKind, type NotificationSettings } from './notification.ts'
import type { NotificationStore } from './notification-store.ts'

/** The job that sends digests. Without one, users can't choose a digest. */
export const digestClassName = 'jobs.MailDigest'

/** Whether a job of the configuration sends digests. */
export const sendsDigests = ({ jobs }: Pick<Configuration, 'jobs'>): boolean =>
  [...jobs.values()].some(({ job }) => job.className === digestClassName)

/** What users chose to be mailed about, under one configuration. */
export class MailChoices {
  readonly #store: Pick<NotificationStore, 'settingsOf'>
  readonly #hasDigest: boolean

  constructor(store: Pick<NotificationStore, 'settingsOf'>, configuration: Pick<Configuration, 'jobs'>) {
    this.#store = store
    this.#hasDigest = sendsDigests(configuration)
  }

  /** Of those users who chose something. */
  settingsOf(users: readonly Identity[]): Promise<ReadonlyMap<Identity, NotificationSettings>> {
    return this.#store.settingsOf(users)
  }

  /** The users among these who want this mail immediately. */
  async mailedNow(kind: NotificationKind, users: readonly Identity[]): Promise<ReadonlySet<Identity>> {
    const settings = await this.#store.settingsOf(users)
    return new Set(users.filter((user) => this.time(settings.get(user), kind) === 'now'))
  }

  /** Whether the user is mailed as it happens about something that happened at that time. */
  async isMailedNow(kind: NotificationKind, user: Identity, at?: Date): Promise<boolean> {
    return this.time((await this.#store.settingsOf([user])).get(user), kind, at) === 'now'
  }

  /** Whether the user wants no mail about it. */
  async isNeverMailed(kind: NotificationKind, user: Identity): Promise<boolean> {
    return this.time((await this.#store.settingsOf([user])).get(user), kind) === 'never'
  }

  time(settings: NotificationSettings | undefined, kind: NotificationKind, at?: Date): ReturnType<typeof mailTime> {
    return mailTime(settings, kind, { hasDigest: this.#hasDigest, at })
  }
}
