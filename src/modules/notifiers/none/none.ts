import { defineNotifier } from '#sdk/notifier.ts'
import { readParameters } from '#sdk/parameters.ts'

/** Takes every mail and tells nobody: for installations, and tests, that want none. */
export default defineNotifier({
  className: 'notifiers.None',
  aliases: ['com.tremolosecurity.notifications.NoNotifications'],
  parameters: {},
  parse: (params, issues, context) => readParameters({}, params, issues, context),
  create: () => ({ send: async () => ({ kind: 'accepted' }) }),
})
