import * as z from 'zod'
import type { NotificationSettingsView } from '#features/portal/contract/main-notifications.ts'
import { type MainParts, userOf } from '#features/portal/front/main-parts.ts'
import {
  type MailTime,
  mailTime,
  mailTimes,
  type NotificationKind,
  type NotificationSettings,
  notificationKinds,
} from '#mail/notification.ts'
import { answer, badRequest } from '#sdk/api/json-answer.ts'
import { readJsonBody, storableText } from '#sdk/api/json-body.ts'
import type { OperationTable } from '#sdk/api/served-api.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import type { GatewayResponse } from '#sdk/http/http.ts'
import { isLanguage, languages } from '#sdk/page/languages.ts'

export const settingOperations = {
  getNotificationSettings: {
    summary: 'When the caller is mailed about what',
    answer: 'NotificationSettings',
    handle: showNotificationSettings,
  },
  changeNotificationSettings: {
    summary: 'Chooses when the caller is mailed about what: as it happens, in the digest, or never',
    body: 'ChosenNotifications',
    answer: 'NotificationSettings',
    handle: changeNotificationSettings,
  },
} satisfies OperationTable<MainParts>

const maxBodyBytes = 16 * 1024

export const settingsSchema = z.strictObject({
  mails: z.partialRecord(z.enum(notificationKinds), z.enum(mailTimes)).default({}),
  language: storableText(35).optional(),
})

/** When the caller is mailed about what. */
async function showNotificationSettings(parts: MainParts, { subject }: Exchange): Promise<GatewayResponse> {
  return answer(settingsView(await parts.host.portal.memory.notificationSettings(userOf(parts, subject)), parts))
}

async function changeNotificationSettings(parts: MainParts, { request, subject }: Exchange): Promise<GatewayResponse> {
  const { mails, language } = await readJsonBody(request, settingsSchema, maxBodyBytes)
  for (const kind of notificationKinds) {
    const mail = mails[kind]
    const choices = choicesOf(kind, parts)
    if (mail === undefined || choices.includes(mail)) continue
    throw badRequest(`mails.${kind} must be one of ${choices.join(', ')}.`)
  }
  if (language !== undefined && !isLanguage(language)) {
    throw badRequest(`language must be one of ${Object.keys(languages).join(', ')}.`)
  }
  const chosen = { choices: mails, ...(language === undefined ? {} : { language }) }
  const saved = await parts.host.portal.memory.chooseNotifications(userOf(parts, subject), chosen)
  return answer(settingsView(saved, parts))
}

/** Access that expires soon is mailed in digests only. */
const choicesOf = (kind: NotificationKind, { host }: MainParts): readonly MailTime[] =>
  mailTimes.filter((time) => (time === 'now' ? kind !== 'access' : time === 'never' || host.portal.mail.hasDigest))

function settingsView(settings: NotificationSettings | undefined, parts: MainParts): NotificationSettingsView {
  const { isConfigured, hasDigest } = parts.host.portal.mail
  return {
    sendsMail: isConfigured,
    mails: notificationKinds.map((kind) => ({
      kind,
      mail: mailTime(settings, kind, { hasDigest }),
      choices: choicesOf(kind, parts),
    })),
    ...(settings?.language === undefined ? {} : { language: settings.language }),
  }
}
