import type { Sessions } from '#engine/session/sessions.ts'
import type { SessionAccess } from '#sdk/auth/session.ts'
import type { Configuration } from '#sdk/module/configuration.ts'

const minuteMillis = 60_000

/** Sessions as modules may use them. */
export function createSessionAccess(sessions: Sessions, { applications }: Configuration): SessionAccess {
  const byName = new Map(applications.map((application) => [application.name, application]))
  return {
    ofUser: (user) => sessions.ofOwner(user),
    end: (user, id) => sessions.endOne(user, id),
    endAll: (user, options) => sessions.endAll(user, options?.except),
    endMarked: (mark) => sessions.endMarked(mark),
    minutesLeft: async (name, request) => {
      const application = byName.get(name)
      const millis = application === undefined ? undefined : await sessions.millisLeft(application, request)
      return millis === undefined ? undefined : Math.floor(millis / minuteMillis)
    },
  }
}
