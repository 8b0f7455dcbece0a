import { type QueryClient, queryOptions, useMutation, useQueryClient } from '@tanstack/react-query'
import type {
  ChosenNotifications,
  NotificationList,
  NotificationSettingsView,
  ReadNotifications,
} from '#features/portal/contract/main-notifications.ts'
import * as mainRoutes from '#features/portal/contract/main-routes.ts'
import type { Language } from '#sdk/page/languages.ts'
import { call } from './call.ts'
import { main } from './main.ts'

/** The number of unread notifications, for the header. */
export const unreadQuery = queryOptions({
  queryKey: ['notifications', 'unread'],
  queryFn: async ({ signal }) =>
    (await call<NotificationList>(main(mainRoutes.listNotifications, {}, { limit: '0' }), { signal })).unread,
})

export const notificationsQuery = queryOptions({
  queryKey: ['notifications', 'list'],
  queryFn: async ({ signal, client }) => {
    const list = await call<NotificationList>(main(mainRoutes.listNotifications), { signal })
    noteUnread(client, list)
    return list
  },
})

const noteUnread = (client: QueryClient, { unread }: NotificationList): void => {
  client.setQueryData(unreadQuery.queryKey, unread)
}

export const notificationSettingsQuery = queryOptions({
  queryKey: ['notification-settings'],
  queryFn: ({ signal }) => call<NotificationSettingsView>(main(mainRoutes.getNotificationSettings), { signal }),
})

const saveSettings = (body: ChosenNotifications): Promise<NotificationSettingsView> =>
  call(main(mainRoutes.changeNotificationSettings), { body })

/** Mails are in the language that the user chose for the pages. */
export const saveMailLanguage = (language: Language): Promise<NotificationSettingsView> =>
  saveSettings({ mails: {}, language })

export function useSaveNotificationSettings(onSaved: () => void) {
  const client = useQueryClient()
  return useMutation({
    mutationFn: saveSettings,
    onSuccess: (saved) => {
      client.setQueryData(notificationSettingsQuery.queryKey, saved)
      onSaved()
    },
  })
}

/** Marks notifications as read. */
export function useMarkRead() {
  const client = useQueryClient()
  return useMutation({
    mutationFn: (ids: readonly string[]) =>
      call<NotificationList>(main(mainRoutes.readNotifications), {
        body: { ids } satisfies ReadNotifications,
      }),
    onSuccess: (list) => {
      client.setQueryData(notificationsQuery.queryKey, list)
      noteUnread(client, list)
    },
  })
}
