setUpColours();
setUpPrinting();
document.documentElement.dataset.ready = "page";
