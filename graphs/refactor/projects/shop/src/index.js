export { formatPrice, receipt } from "./cart.js";
export { invoice } from "./invoice.js";
