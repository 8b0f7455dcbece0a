import type { RegisterConfig } from '#features/registration/contract/register.ts'
import type { FormAttributeView } from '#sdk/contract/forms.ts'

/** A plain text field of a registration form. */
export const registerField = (name: string, more: Partial<FormAttributeView> = {}): FormAttributeView => ({
  name,
  displayName: name,
  readOnly: false,
  required: true,
  unique: false,
  type: 'text',
  values: [],
  show: true,
  ...more,
})

/** The configuration of a form that asks for nothing but its fields. */
export const registerConfig = (more: Partial<RegisterConfig> = {}): RegisterConfig => ({
  frontPage: { title: '', text: '' },
  homeURL: '/',
  logoutURL: '/logout',
  attributes: [registerField('uid')],
  attributeNameList: [],
  requireReason: false,
  preSetPassword: false,
  requireReCaptcha: false,
  requireTermsAndConditions: false,
  reasonIsList: false,
  reasons: [],
  submitButtonText: '',
  submittedText: '',
  enableThirdColumn: false,
  themePrimaryMain: '',
  themePrimaryDark: '',
  themePrimaryLight: '',
  themeSecondaryMain: '',
  themeSecondaryDark: '',
  themeSecondaryLight: '',
  headerTitle: '',
  errorColor: '',
  humanCheck: { kind: 'none' },
  requireInvitation: false,
  minSearchChars: 3,
  ...more,
})
