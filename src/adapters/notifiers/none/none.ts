import { withParameters } from '#sdk/module/parameters.ts'
import { defineNotifier } from '#sdk/notifier/notifier.ts'

/** Drops every mail: for installations and tests without mail. */
export default defineNotifier({
  className: 'notifiers.None',
  delivers: 'both',
  aliases: ['com.tremolosecurity.notifications.NoNotifications'],
  ...withParameters({}),
  create: () => ({ send: async () => ({ kind: 'accepted' }) }),
})
